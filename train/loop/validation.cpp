#include "train/loop/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "train/units/folds.hpp"
#include "train/units/prepared_graphs.hpp"

namespace tpudist {

namespace {

// The validation graphs by the members that never trained on them; empty where none trains on them.
ScoringMembers members_without(const EnsembleConfig& ensemble, const FoldTable& folds,
                               const Dataset& valid) {
  ScoringMembers by;
  if (!ensemble.trains_on_valid()) return by;
  for (const int fold : graph_folds(folds, valid)) {
    std::vector<bool>& members = by.emplace_back();
    for (int m = 0; m < ensemble.members; ++m) members.push_back(ensemble.held_out_fold(m) == fold);
  }
  return by;
}

}  // namespace

Validation::Validation(const Experiment& experiment, const TrainingSetup& setup,
                       JobContext& context)
    : experiment_(experiment), setup_(setup), context_(context) {
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
    run_on_all_ranks(context.world, [&] {  // now, and not after the last step
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
  Evaluation evaluation = start_evaluation(*session_, alive, most_rows);
  evaluation.names = member_names(experiment_);
  return evaluation;
}

Evaluation Validation::evaluate(std::span<const float> flat, const std::vector<bool>& alive,
                                std::int64_t most_rows, const std::function<bool()>& stops) const {
  Evaluation evaluation = evaluate_members(*session_, flat, alive, most_rows, context_, stops);
  evaluation.names = member_names(experiment_);
  return evaluation;
}

void Validation::log_graphs(const TrainedOn& trained) const {
  if (!session_) return;
  if (!session_->is_limited()) {
    if (const std::string text = trained.text(session_->data()); !text.empty())
      spdlog::warn("validation split: members are {}", text);
    return;
  }
  constexpr std::size_t kListed = 10;  // graphs of a fold; folds.yaml has all of them
  std::vector<std::vector<std::string>> graphs(static_cast<std::size_t>(setup_.folds.folds));
  const std::vector<int> folds = graph_folds(setup_.folds, session_->data());
  for (int g = 0; g < session_->data().size(); ++g) {
    graphs[static_cast<std::size_t>(folds[static_cast<std::size_t>(g)])].push_back(
        session_->data().graph(g).name);
  }
  spdlog::info(
      "members train on the validation split but for their own fold; each of its graphs is scored "
      "by "
      "the members that hold it out:");
  for (std::size_t fold = 0; fold < graphs.size(); ++fold) {
    spdlog::info("  fold {}, {} graphs: {}", fold, graphs[fold].size(),
                 first_of(graphs[fold], kListed));
  }
}

}  // namespace tpudist
