#include "train/loop/run_evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "core/trace.hpp"
#include "dist/health/agreement.hpp"
#include "results/records/predictions_file.hpp"
#include "train/loop/run_predictions.hpp"
#include "train/units/prepared_graphs.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

// Which members never trained on each validation graph; empty if no member trains on the split.
ScoringMembers members_without(const EnsembleConfig& ensemble, const FoldTable& folds,
                               const Dataset& valid) {
  ScoringMembers by;
  if (!ensemble.trains_on_valid) return by;
  for (const int fold : graph_folds(folds, valid)) {
    std::vector<bool>& members = by.emplace_back();
    for (int m = 0; m < ensemble.members; ++m) members.push_back(ensemble.held_out_fold(m) == fold);
  }
  return by;
}

}  // namespace

Validation::Validation(const TrainingSetup& setup, JobContext& context)
    : setup_(setup), context_(context) {
  const Experiment& experiment = setup.experiment;
  const DatasetOptions options = experiment.data.evaluation("valid");
  if (!tpudist::has_graphs(options)) {
    if (experiment.train.early_stop.patience > 0)
      throw ConfigError(
          "train.early_stop goes by scores on the validation split, which has no graphs; leave it "
          "out, or give data.include.valid and data.exclude.valid that keep some");
    require_same_graphs(options, nullptr, context.world);
    return;
  }
  session_.emplace(options, context);
  session_->add(experiment, setup.network);
  const TrainConfig& train = experiment.train;
  if (train.evaluate_every > 0 || train.last_evaluation != LastEvaluation::none ||
      experiment.predictions.wanted) {
    run_on_all_ranks(context.world, [&] {  // fail now, not after the last step
      for (int g = 0; g < session_->data().size(); ++g)
        require_nodes(session_->data(), setup.network, g);
    });
  }
  session_->limit(members_without(experiment.ensemble, setup.folds, session_->data()));
}

EvaluationCosts Validation::costs() const {
  return evaluation_costs(setup_, session_ ? &*session_ : nullptr, context_);
}

Evaluation Validation::start(const std::vector<bool>& alive, std::int64_t most_rows) const {
  return start_evaluation(*session_, alive, most_rows);
}

Evaluation Validation::evaluate(std::span<const float> flat, const std::vector<bool>& alive,
                                std::int64_t most_rows, const std::function<bool()>& stops) const {
  return evaluate_members(*session_, flat, alive, most_rows, context_, stops);
}

void Validation::log_graphs(const TrainedOn& trained) const {
  if (!session_) return;
  if (!session_->is_limited()) {
    if (const std::string text = trained.text(session_->data()); !text.empty())
      spdlog::warn("validation split: members are {}", text);
    return;
  }
  constexpr std::size_t kListed = 10;  // graphs of a fold; folds.yaml has all of them
  std::vector<std::vector<std::string>> graphs(setup_.folds.folds);
  const std::vector<int> folds = graph_folds(setup_.folds, session_->data());
  for (int g = 0; g < session_->data().size(); ++g) {
    graphs[folds[g]].push_back(session_->data().graph(g).name);
  }
  spdlog::info(
      "members train on the validation split but for their own fold; each of its graphs is scored "
      "by "
      "the members that hold it out:");
  for (std::size_t fold = 0; fold < graphs.size(); ++fold) {
    spdlog::info("  fold {}, {}: {}", fold, counted(std::ssize(graphs[fold]), "graph"),
                 first_of(graphs[fold], kListed));
  }
}

RunEvaluation::RunEvaluation(const TrainingSetup& setup, const RunFolder& run,
                             RunCheckpoints& checkpoints, RunReport& report, TrainingState& state,
                             JobContext& context)
    : experiment_(setup.experiment),
      setup_(setup),
      run_(run),
      checkpoints_(checkpoints),
      report_(report),
      state_(state),
      context_(context),
      validation_(setup, context) {}

void RunEvaluation::step() {
  const TrainConfig& train = experiment_.train;
  const bool due = train.evaluate_every > 0 && state_.step % train.evaluate_every == 0;
  if (!due || !validation_.has_graphs()) return;
  const Evaluation evaluation = evaluate(train.evaluate_rows);
  record(evaluation);
  stop_members(evaluation);
}

// Scores the validation split on at most `rows` rows a graph (0 = all). `stops`: as in
// evaluate_members.
Evaluation RunEvaluation::evaluate(std::int64_t rows, const std::function<bool()>& stops) {
  context_.enter("evaluation", state_.step);
  const TraceSpan span(context_.trace, "evaluation", state_.step);
  return validation_.evaluate(state_.scored_weights(), state_.alive(), rows, stops);
}

// Keeps and logs each member's best score. If the last evaluation has more rows than the earlier
// ones, their scores are not comparable.
void RunEvaluation::record(const Evaluation& evaluation) {
  const std::vector<double> means = evaluation.member_means();
  const bool on_the_way =
      std::ranges::any_of(state_.best_step, [](std::int64_t step) { return step >= 0; });
  const bool more_rows = evaluation.most_rows != experiment_.train.evaluate_rows &&
                         std::ranges::any_of(evaluation.ensemble, [&](const GraphMetrics& graph) {
                           return graph.configs > experiment_.train.evaluate_rows;
                         });
  const bool compared = !on_the_way || !more_rows;
  for (std::size_t m = 0; compared && m < means.size(); ++m) {
    if (std::isfinite(means[m]) && !(means[m] <= state_.best_score[m])) {
      state_.best_score[m] = means[m];
      state_.best_step[m] = state_.step;
    }
  }
  checkpoints_.save_if_best(state_, compared ? evaluation.ensemble_mean() : kNone);
  report_.evaluation(evaluation, state_);
}

// Stops members that do not improve. Rank 0 decides. No member trains on the validation split here.
void RunEvaluation::stop_members(const Evaluation& evaluation) {
  if (experiment_.train.early_stop.patience == 0) return;
  EarlyStop& early_stop = state_.early_stop;
  const std::vector<bool> before = state_.training();
  early_stop.take(evaluation.member_means(), before, state_.step);
  context_.world.broadcast(std::span(early_stop.best), 0);
  context_.world.broadcast(std::span(early_stop.waited), 0);
  context_.world.broadcast(std::span(early_stop.stopped_at), 0);
  for (const EarlyStopped& stopped : stopped_members(experiment_.ensemble, state_)) {
    if (!root() || stopped.step != state_.step) continue;
    context_.progress.line(
        fmt::format("step {:>7}  member {} stops: no better score in {}", state_.step,
                    stopped.member, counted(experiment_.train.early_stop.patience, "evaluation")));
  }
}

// Most rows of a graph in the evaluation after the last step; 0 = all.
std::int64_t RunEvaluation::last_rows() const {
  const TrainConfig& train = experiment_.train;
  return train.last_evaluation == LastEvaluation::sampled ? train.evaluate_rows : 0;
}

// Passes over the validation split once if evaluation and predictions use the same rows.
void RunEvaluation::finish(TrainOutcome& outcome, const std::function<StepDecision()>& wish) {
  context_.enter("evaluation", state_.step);
  const bool evaluates =
      validation_.has_graphs() && experiment_.train.last_evaluation != LastEvaluation::none;
  const bool at_once = evaluates && experiment_.predictions.wanted &&
                       experiment_.predictions.most_rows == last_rows();
  const auto stops = [&] {
    const StepDecision agreed = agree(context_.world, wish(), nullptr);
    outcome.stopped = agreed != StepDecision::go_on;
    outcome.out_of_time = agreed == StepDecision::out_of_time;
    return outcome.stopped;
  };
  if (evaluates && !at_once) {
    Evaluation evaluation = evaluate(last_rows(), stops);
    if (outcome.stopped) return;
    record(evaluation);
    outcome.evaluation = std::move(evaluation);
    log_scores(outcome, /*predicted=*/false);
  }
  if (experiment_.predictions.wanted) predict(outcome, at_once, stops);
}

// With `evaluates` the predictions also serve as the last evaluation.
void RunEvaluation::predict(TrainOutcome& outcome, bool evaluates,
                            const std::function<bool()>& stops) {
  context_.enter("predictions", state_.step);
  const TraceSpan span(context_.trace, "predictions", state_.step);
  Evaluation evaluation;
  if (evaluates) evaluation = validation_.start(state_.alive(), last_rows());
  const Predicted predicted = write_predictions(run_.predictions(), setup_, state_, context_, stops,
                                                evaluates ? &evaluation : nullptr);
  if (predicted == Predicted::stopped) return;
  if (predicted == Predicted::nothing) {
    if (root()) spdlog::warn("no predictions: there are no folds, and no validation graphs");
    return;
  }
  if (evaluates) {
    record(evaluation);
    outcome.evaluation = std::move(evaluation);
  }
  if (root()) spdlog::info("wrote {}", run_.predictions().string());
  log_scores(outcome, /*predicted=*/true);
}

// Writes scores.json. If predictions were written, it includes the out-of-fold scores, computed
// from their file.
void RunEvaluation::log_scores(TrainOutcome& outcome, bool predicted) {
  nlohmann::json out_of_fold;
  run_on_first_rank(context_.world, [&] {
    if (!predicted) return;
    const PredictionsFile file(run_.predictions());
    outcome.out_of_fold = out_of_fold_scores(file);
    if (!outcome.out_of_fold.empty())
      out_of_fold = out_of_fold_json(file.header(), outcome.out_of_fold);
  });
  const AlignedFloats weights = state_.scored_weights();
  report_.scores(outcome.evaluation, stopped_members(experiment_.ensemble, state_), out_of_fold,
                 parameter_hash(weights, experiment_.ensemble.members, setup_.network.parameters()),
                 state_.init_hash);
}

}  // namespace tpudist
