#include "train/loop/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "data/loading/prefetcher.hpp"
#include "dist/agreement.hpp"
#include "ensemble/out_of_fold.hpp"
#include "ensemble/predictions_file.hpp"
#include "train/loop/largest_unit.hpp"
#include "train/loop/layer_report.hpp"
#include "train/loop/recorded_folds.hpp"
#include "train/loop/run_checkpoints.hpp"
#include "train/loop/run_predictions.hpp"
#include "train/loop/run_report.hpp"
#include "train/loop/step_boundary.hpp"
#include "train/loop/time_limit.hpp"
#include "train/loop/training_state.hpp"
#include "train/loop/training_step.hpp"
#include "train/loop/validation.hpp"
#include "train/state/run_folder.hpp"
#include "train/units/feature_statistics.hpp"
#include "train/units/folds.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// One training run: everything that is made once, and the loop over the steps.
class TrainingRun {
 public:
  // `claim`: on rank 0 only.
  TrainingRun(const Experiment& experiment, const std::filesystem::path& run, RunClaim* claim,
              JobContext& context)
      : experiment_(experiment),
        run_(run),
        claim_(claim),
        context_(context),
        setup_(experiment, experiment.training_data(), context.pool, context.place.device,
               context.world.size(), context.world),
        builder_(setup_.steps_of(context.world.rank())),
        validation_(experiment, setup_, context),
        checkpoints_(experiment, setup_, run_, claim, context),
        report_(experiment, run_, context),
        step_(experiment, setup_.network, context),
        state_(experiment, setup_.network),
        limit_(experiment.train.time_limit,
               static_cast<double>(3 * sizeof(float) * state_.flat.size())) {}

  TrainOutcome run(bool resume, const std::function<bool()>& stop_requested) {
    start(resume);
    context_.progress.start("train", experiment_.train.steps - state_.step, "steps");
    TrainOutcome outcome;
    while (!is_done() && !outcome.stopped) train_members(stop_requested, outcome);
    context_.progress.finish();
    checkpoints_.save(state_);
    checkpoints_.wait();
    if (!outcome.stopped) finish(outcome, stop_requested);
    checkpoints_.wait();  // for that of the last evaluation
    report_.finish();
    context_.enter("end");
    outcome.steps = state_.step;
    outcome.failed = failed_members();
    outcome.stopped_early = stopped_members();
    outcome.train_seconds = state_.train_seconds;
    outcome.wait_seconds = wait_seconds_;
    outcome.parameter_hash =
        parameter_hash(std::vector<float>(state_.flat.begin(), state_.flat.end()),
                       experiment_.ensemble.members, setup_.network.parameters());
    require_equal_on_all_ranks(context_.world, outcome.parameter_hash, "the trained parameters");
    if (state_.average.is_kept()) {
      const AlignedFloats scored = state_.scored_weights();
      outcome.average_hash =
          parameter_hash(scored, experiment_.ensemble.members, setup_.network.parameters());
      require_equal_on_all_ranks(context_.world, *outcome.average_hash, "the averaged parameters");
    }
    leave_ranks();
    return outcome;
  }

 private:
  bool root() const { return context_.world.rank() == 0; }

  bool is_done() const {
    return state_.step >= experiment_.train.steps ||
           std::ranges::none_of(state_.training(), std::identity());
  }

  // From here on ranks can say which of them the others wait for. Behind what the last start may have
  // left there.
  void watch_ranks() {
    run_on_all_ranks(context_.world, [&] {
      if (root()) std::filesystem::remove_all(run_.ranks());
    });
    if (!context_.watchdog) return;
    context_.watchdog->watch(run_.ranks(), context_.world.rank(), context_.world.size());
  }

  void leave_ranks() {
    if (!context_.watchdog) return;
    context_.watchdog->leave();
    std::error_code ignored;  // what is left there is of no harm
    if (root()) std::filesystem::remove_all(run_.ranks(), ignored);
  }

  // Takes steps until the run is done, has to stop, or a member has left it: what is prepared ahead is
  // for those that train.
  void train_members(const std::function<bool()>& stop_requested, TrainOutcome& outcome) {
    const std::vector<bool> training = state_.training();
    Prefetcher<StepWork> work(state_.step, experiment_.train.prefetch, 1, [&](std::int64_t step) {
      if (context_.trace) context_.trace->name_thread("data and plans");
      return builder_.build(
          step, training, [&] { context_.advance(); }, context_.trace);
    });
    while (!is_done() && state_.training() == training) {
      context_.enter("training", state_.step + 1);
      const TraceSpan step_span(context_.trace, "step", state_.step + 1);
      const auto begin = Clock::now();
      const double waited = work.waited().count();
      TraceSpan wait_span(context_.trace, "wait for data", state_.step + 1);
      std::optional<StepWork> next;
      std::exception_ptr error;
      try {
        next = work.next();
      } catch (const std::exception&) {
        error = std::current_exception();
      }
      wait_span.end();
      const bool out_of_time = limit_.is_over();
      TraceSpan agree_span(context_.trace, "agree on step", state_.step + 1);
      const Boundary agreed = agree(context_.world,
                                    stop_requested() ? Boundary::stop
                                    : out_of_time    ? Boundary::out_of_time
                                                     : Boundary::go_on,
                                    error);
      agree_span.end();
      if (agreed != Boundary::go_on) {
        outcome.stopped = true;
        outcome.out_of_time = agreed == Boundary::out_of_time;
        return;
      }
      one_step(*next, begin, work.waited().count() - waited);
    }
  }

  // What each rank has read, or made, by itself.
  void require_same_start() {
    const AgreedValue start[] = {
        {"first step", fmt::format("{}", state_.step + 1)},
        {"parameters to start from", to_hex(hash64(std::as_bytes(std::span(state_.flat))))}};
    require_agreement(context_.world, start, "give all ranks the same run folder (--run-dir)");
  }

  void initialise() {
    state_.initialise(experiment_, setup_.network);
    if (setup_.network.takes_statistics()) {
      run_on_all_ranks(context_.world,
                       [&] { state_.set_statistics(setup_.network, member_statistics(setup_)); });
    }
    state_.keep_roll_back();
  }

  // Everything that can be refused is refused before the first write.
  void start(bool resume) {
    if (!resume || !restored()) initialise();
    stop_if_all_failed();
    require_same_start();
    run_on_all_ranks(context_.world, [&] {
      if (!root()) return;
      claim_->begin(experiment_.resolved_yaml);
      run_.rewind_metrics(state_.step);
      record_folds(run_, setup_.folds);
      log_layers();
    });
    watch_ranks();
    if (root()) validation_.tell_held_out();
    for (const int fold : empty_folds(setup_.folds, setup_.data)) {
      if (root()) {
        spdlog::warn("fold {} has no training graph of {}: its members train on all of them", fold,
                     experiment_.data.collection.name);
      }
    }
  }

  void log_layers() const {
    std::vector<Slate> slates;
    for (const SlateRows& slate : largest_unit(setup_))
      slates.push_back(setup_.data.slate(slate.graph, slate.rows));
    const PlanComparison plans = setup_.units.compare(slates, edge_draw(experiment_, 0));
    spdlog::info("layers, and their rows in the largest unit against a dense plan's:");
    for (const std::string& line : layer_lines(setup_, plans)) spdlog::info("  {}", line);
  }

  // Whether the run goes on from a checkpoint.
  bool restored() {
    if (!checkpoints_.restore(state_)) return false;
    for (int member : failed_members()) {
      if (root()) spdlog::warn("member {} failed before and stays left out", member);
    }
    return true;
  }

  // Their numbers.
  std::vector<int> failed_members() const {
    std::vector<int> numbers;
    for (int m = 0; m < experiment_.ensemble.members; ++m) {
      if (state_.failed[static_cast<std::size_t>(m)])
        numbers.push_back(experiment_.ensemble.number_of(m));
    }
    return numbers;
  }

  std::vector<EarlyStopped> stopped_members() const {
    std::vector<EarlyStopped> members;
    for (std::size_t m = 0; m < state_.failed.size(); ++m) {
      if (!state_.early_stop.has_stopped(m)) continue;
      members.push_back({experiment_.ensemble.number_of(static_cast<int>(m)),
                         state_.early_stop.stopped_at[m], state_.best_step[m],
                         state_.best_score[m]});
    }
    return members;
  }

  // Nothing is saved: the checkpoints that are there are of healthy members.
  void stop_if_all_failed() const {
    if (!state_.all_failed()) return;
    throw Error(ErrorKind::failed,
                fmt::format("no member is left at step {}: loss or gradient of each of the {} was "
                            "not finite; try a smaller optimizer.lr, a schedule.warmup or an "
                            "optimizer.clip_norm",
                            state_.step, state_.failed.size()));
  }

  void one_step(const StepWork& next, Clock::time_point begin, double wait) {
    const StepResult result = step_.run(next, state_);
    const double seconds = seconds_since(begin);
    state_.train_seconds += seconds;
    wait_seconds_ += wait;
    StepTimes times = step_.times();
    times.data_wait = wait;
    report_.step(result, state_, seconds, times);
    checkpoints_.tell();
    stop_if_all_failed();
    const TrainConfig& train = experiment_.train;
    const bool checkpoint_is_due =
        train.checkpoint_every > 0 && state_.step % train.checkpoint_every == 0;
    if (checkpoint_is_due) state_.keep_roll_back();
    const bool last = state_.step == train.steps;
    if (!last && validation_.has_graphs() && train.evaluate_every > 0 &&
        state_.step % train.evaluate_every == 0) {
      stop_members(evaluate(train.evaluate_rows));
    }
    if (!last && checkpoint_is_due) checkpoints_.save(state_);
    if (checkpoints_.seconds() > 0) limit_.wrote_checkpoint(checkpoints_.seconds());
  }

  // Lets members go that do not get better. Only the validation split counts, whose graphs no
  // member trains on. Rank 0 decides.
  void stop_members(const Evaluation& evaluation) {
    if (experiment_.train.early_stop.patience == 0) return;
    EarlyStop& early_stop = state_.early_stop;
    const std::vector<bool> before = state_.training();
    early_stop.take(evaluation.member_means(), before, state_.step);
    context_.world.broadcast(std::span(early_stop.best), 0);
    context_.world.broadcast(std::span(early_stop.waited), 0);
    context_.world.broadcast(std::span(early_stop.stopped_at), 0);
    for (const EarlyStopped& stopped : stopped_members()) {
      if (!root() || stopped.step != state_.step) continue;
      context_.progress.line(
          fmt::format("step {:>7}  member {} stops: no better score in {} evaluations", state_.step,
                      stopped.member, experiment_.train.early_stop.patience));
    }
  }

  // Most rows of a graph in the evaluation behind the last step; 0 = all.
  std::int64_t last_rows() const {
    const TrainConfig& train = experiment_.train;
    return train.last_evaluation == LastEvaluation::sampled ? train.evaluate_rows : 0;
  }

  // The last evaluation and the predictions, in one pass over the validation split where both want the
  // same rows of it.
  void finish(TrainOutcome& outcome, const std::function<bool()>& stop_requested) {
    context_.enter("evaluation", state_.step);
    const bool evaluates =
        validation_.has_graphs() && experiment_.train.last_evaluation != LastEvaluation::none;
    const bool at_once = evaluates && experiment_.predictions.wanted &&
                         experiment_.predictions.most_rows == last_rows();
    if (evaluates && !at_once) {
      outcome.evaluation = evaluate(last_rows());
      report_.scores(outcome.evaluation, stopped_members(), nullptr);
    }
    if (experiment_.predictions.wanted) predict(outcome, at_once, stop_requested);
  }

  // Predictions, and how good those of held-out graphs are, from the file as it is written. With
  // `evaluates` they are what the last evaluation goes by.
  void predict(TrainOutcome& outcome, bool evaluates, const std::function<bool()>& stop_requested) {
    Evaluation evaluation;
    context_.enter("predictions", state_.step);
    const TraceSpan span(context_.trace, "predictions", state_.step);
    bool out_of_time = false;
    const std::function<bool()> stops = [&] {
      return stop_requested() || (out_of_time = limit_.is_over());
    };
    if (evaluates) evaluation = validation_.start(state_.alive(), last_rows());
    const AlignedFloats weights = state_.scored_weights();
    const WrittenPredictions written = write_predictions(
        run_.predictions(), setup_, {weights, state_.alive(), state_.step, run_.metrics()},
        {stops, evaluates ? &evaluation : nullptr}, context_);
    outcome.stopped = written.stopped;
    outcome.out_of_time = written.stopped && out_of_time;
    if (written.stopped) return;
    if (!written.header) {
      if (root()) spdlog::warn("no predictions: there are no folds, and no validation graphs");
      return;
    }
    if (evaluates) {
      record(evaluation);
      outcome.evaluation = std::move(evaluation);
    }
    nlohmann::json out_of_fold;
    run_on_all_ranks(context_.world, [&] {
      if (!root()) return;
      const PredictionsFile file(run_.predictions());
      outcome.out_of_fold = out_of_fold_scores(file);
      if (!outcome.out_of_fold.empty())
        out_of_fold = out_of_fold_json(file.header(), outcome.out_of_fold);
    });
    if (root()) spdlog::info("wrote {}", run_.predictions().string());
    report_.scores(outcome.evaluation, stopped_members(), out_of_fold);
  }

  // Scores the validation split on at most `rows` rows a graph (0 = all).
  Evaluation evaluate(std::int64_t rows) {
    context_.enter("evaluation", state_.step);
    const TraceSpan span(context_.trace, "evaluation", state_.step);
    Evaluation evaluation = validation_.evaluate(state_.scored_weights(), state_.alive(), rows);
    record(evaluation);
    return evaluation;
  }

  // Keeps each member's best score, and tells of it.
  void record(const Evaluation& evaluation) {
    const std::vector<double> means = evaluation.member_means();
    for (std::size_t m = 0; m < means.size(); ++m) {
      if (std::isfinite(means[m]) && !(means[m] <= state_.best_score[m])) {
        state_.best_score[m] = means[m];
        state_.best_step[m] = state_.step;
      }
    }
    checkpoints_.save_if_best(state_, evaluation.ensemble_mean());
    report_.evaluation(evaluation, state_);
  }

  const Experiment& experiment_;
  const RunFolder run_;
  RunClaim* const claim_;  // null but on rank 0
  JobContext& context_;
  const TrainingSetup setup_;
  const StepBuilder builder_;
  const Validation validation_;
  RunCheckpoints checkpoints_;
  RunReport report_;
  TrainingStep step_;
  TrainingState state_;
  TimeLimit limit_;
  double wait_seconds_ = 0;
};

}  // namespace

TrainOutcome train(const Experiment& experiment, const std::filesystem::path& run, bool resume,
                   JobContext& context, const std::function<bool()>& stop_requested) {
  std::optional<RunClaim> claim;
  run_on_all_ranks(context.world, [&] {
    if (context.world.rank() == 0) claim.emplace(run, resume);
  });
  try {
    return TrainingRun(experiment, run, claim ? &*claim : nullptr, context)
        .run(resume, stop_requested);
  } catch (...) {
    // Others that wait for this rank in the midst of a step are to know that it will not come.
    if (context.watchdog) context.watchdog->activity().fail();
    throw;
  }
}

}  // namespace tpudist
