#include "train/loop/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/prefetcher.hpp"
#include "core/process.hpp"
#include "data/loading/seen_graphs.hpp"
#include "dist/health/agreement.hpp"
#include "results/records/run_folder.hpp"
#include "results/records/settings.hpp"
#include "train/loop/forecast.hpp"
#include "train/loop/run_checkpoints.hpp"
#include "train/loop/run_evaluation.hpp"
#include "train/loop/run_report.hpp"
#include "train/loop/time_limit.hpp"
#include "train/loop/training_state.hpp"
#include "train/loop/training_step.hpp"
#include "train/scoring/trained_run.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

using Clock = std::chrono::steady_clock;

// One training run: its parts, and the loop over the steps.
class TrainingRun {
 public:
  // `claim`: on rank 0 only.
  TrainingRun(const Experiment& experiment, const std::filesystem::path& run, RunClaim* claim,
              JobContext& context, const std::function<bool()>& stop_requested)
      : experiment_(experiment),
        run_(run),
        claim_(claim),
        context_(context),
        stop_requested_(stop_requested),
        setup_(experiment, experiment.training_data(), context.pool, context.topology.device,
               context.world.size(), context.world),
        builder_(setup_.steps_of(context.world.rank())),
        checkpoints_(setup_, run_, claim, context),
        report_(experiment, run_, context),
        step_(experiment, setup_.network, context),
        state_(setup_),
        limit_(experiment.train.time_limit, state_.checkpoint_bytes()),
        evaluation_(setup_, run_, checkpoints_, report_, state_, context) {}

  TrainOutcome run(bool resume) {
    start(resume);
    const bool only_scores = is_done();  // nothing is left to train
    context_.progress.start("train", experiment_.train.steps - state_.step, "steps");
    begin_forecast();
    TrainOutcome outcome;
    while (!is_done() && !outcome.stopped) train_members(outcome);
    context_.progress.finish();
    save();
    checkpoints_.wait();
    if (!outcome.stopped) evaluation_.finish(outcome, [this] { return wish(); });
    checkpoints_.wait();  // for the checkpoint of the last evaluation
    report_.finish();
    if (only_scores && outcome.out_of_time &&
        !context_.trained_before) {  // the next start would begin them again
      throw Error(ErrorKind::failed,
                  "scores after the last step do not fit into the job's time: raise --time (or "
                  "train.time_limit), or lower predictions.rows, or take train.last_evaluation: "
                  "sampled");
    }
    context_.enter("end");
    // No loss follows the last step: scores tell whether it made the weights too large.
    for (std::size_t m = 0; outcome.evaluation && m < state_.failed.size(); ++m)
      if (!outcome.evaluation->finite[m]) state_.failed[m] = 1;
    if (state_.all_failed()) leave_ranks();
    stop_if_all_failed();
    sum_up(outcome);
    leave_ranks();
    return outcome;
  }

 private:
  bool root() const { return context_.world.rank() == 0; }

  bool is_done() const {
    return state_.step >= experiment_.train.steps ||
           std::ranges::none_of(state_.training(), std::identity());
  }

  // The name of last_bits_.
  std::string what_must_be_equal() const {
    return fmt::format("losses, gradients and parameters of step {}", state_.step);
  }

  // The wish of this rank between two steps.
  StepDecision wish() {
    const bool out_of_time = limit_.is_over(), asked = stop_requested_();
    if (asked && !(experiment_.train.time_limit.slurm && slurm_job_ends_soon()))
      return StepDecision::stop;
    return out_of_time || asked ? StepDecision::out_of_time : StepDecision::go_on;
  }

  // One hash for all members of the run, the same on all ranks.
  std::uint64_t hash_of(std::span<const float> flat, const char* what) {
    const std::uint64_t hash =
        parameter_hash(flat, experiment_.ensemble.members, setup_.network.parameters());
    require_equal_on_all_ranks(context_.world, hash, what);
    return hash;
  }

  void sum_up(TrainOutcome& outcome) {
    outcome.folder = run_.path();
    outcome.has_validation = evaluation_.validation().has_graphs();
    outcome.steps = state_.step;
    outcome.failed = failed_members(experiment_.ensemble, state_);
    outcome.stopped_early = stopped_members(experiment_.ensemble, state_);
    outcome.train_seconds = state_.train_seconds;
    outcome.wait_seconds = wait_seconds_;
    if (const DeviceCopies* device = setup_.network.device())
      outcome.device_bytes = device->peak_bytes();
    outcome.parameter_hash = hash_of(state_.weights().flat, "the trained parameters");
    if (state_.weights().average.is_kept())
      outcome.average_hash = hash_of(state_.scored_weights(), "the averaged parameters");
  }

  // From here on, ranks can name the rank for which the others wait. First removes the files of an
  // earlier start.
  void watch_ranks() {
    run_on_first_rank(context_.world, [&] {
      std::error_code ignored;  // a rank that hangs on this node may hold its file
      std::filesystem::remove_all(run_.ranks(), ignored);
    });
    if (!context_.watchdog) return;
    context_.watchdog->watch(run_.ranks(), context_.world.rank(), context_.world.size());
  }

  void leave_ranks() {
    if (!context_.watchdog) return;
    context_.watchdog->leave();
    std::error_code ignored;  // remaining files do no harm
    if (root()) std::filesystem::remove_all(run_.ranks(), ignored);
  }

  // Takes steps until the run is done, must stop, or loses a member: steps are prepared only for
  // the members that train.
  void train_members(TrainOutcome& outcome) {
    const std::vector<bool> training = state_.training();
    Prefetcher<StepWork> work(state_.step, experiment_.train.prefetch, setup_.steps_at_once,
                              [&](std::int64_t step) {
                                if (context_.trace) context_.trace->name_thread("data and plans");
                                return builder_.build(
                                    step, training, [&] { context_.advance(); }, context_.trace);
                              });
    while (!is_done() && state_.training() == training) {
      context_.enter("training", state_.step + 1);
      const TraceSpan step_span(context_.trace, "step", state_.step + 1);
      const auto begin = Clock::now();
      const double waited = work.waited().count();
      const std::optional<StepWork> next = agreed_work(work, outcome);
      if (!next) return;
      one_step(*next, begin, work.waited().count() - waited);
    }
  }

  // The first step warms up. With few steps a forecast would come too late.
  void begin_forecast() {
    const std::int64_t left = experiment_.train.steps - state_.step;
    if (!root() || left < 20 || verbosity() == Verbosity::quiet) return;
    steps_to_measure_ = static_cast<int>(std::clamp<std::int64_t>(left / 20, 3, 20));
  }

  // After the first steps: prints how long the training will take.
  void forecast(const StepWork& work, double seconds, const StepTimes& times) {
    if (steps_to_measure_ == 0) return;
    if (!warmed_up_) {
      warmed_up_ = true;
      return;
    }
    measured_.add(work, seconds, times);
    if (measured_.count() < steps_to_measure_) return;
    steps_to_measure_ = 0;
    try {
      const TimeForecast left =
          forecast_time(experiment_, measured_, measured_.seconds(), context_.world.size(),
                        evaluation_.validation().costs(), state_.checkpoint_bytes(), state_.step);
      context_.progress.line(
          fmt::format("time left: about {} ({})", format_seconds(left.total()), left.text()));
    } catch (const Error& error) {  // training reports faults of the data when it reads them
      spdlog::debug("no forecast: {}", error.what());
    }
  }

  // The next step's work, when all ranks have theirs and agree to go on. Nothing if a rank wants to
  // stop; the outcome has the reason.
  std::optional<StepWork> agreed_work(Prefetcher<StepWork>& work, TrainOutcome& outcome) {
    std::optional<StepWork> next;
    std::exception_ptr error;
    {
      const TraceSpan span(context_.trace, "wait for data", state_.step + 1);
      try {
        next = work.next();
      } catch (const std::exception&) {
        error = std::current_exception();
      }
    }
    const StepDecision own = wish();
    const TraceSpan span(context_.trace, "agree on step", state_.step + 1);
    const StepDecision agreed = agree(context_.world, own, error, last_bits_, what_must_be_equal());
    if (agreed == StepDecision::go_on) return next;
    outcome.stopped = true;
    outcome.out_of_time = agreed == StepDecision::out_of_time;
    return std::nullopt;
  }

  // Compares the data that each rank has read or computed by itself.
  void require_same_start() {
    const AgreedValue start[] = {{"first step", fmt::format("{}", state_.step + 1)},
                                 {"parameters to start from",
                                  to_hex(hash64(std::as_bytes(std::span(state_.weights().flat))))}};
    require_agreement(context_.world, start,
                      experiment_.train.init_from.empty() || state_.step > 0
                          ? "give all ranks the same run folder (--run-dir)"
                          : "give all ranks the same files at train.init_from");
  }

  // All checks come before the first write.
  void start(bool resume) {
    run_on_all_ranks(context_.world, [&] { require_device_memory(setup_, context_); });
    if (!resume || !restored()) begin_anew(setup_, state_, context_);
    stop_if_all_failed();
    require_same_start();
    run_on_first_rank(context_.world, [&] {
      claim_->begin(experiment_.resolved_yaml);
      run_.rewind_metrics(state_.step);
      record_folds(run_, setup_.folds);
      record_graphs();
      log_layers();
    });
    report_.start(state_.step);
    watch_ranks();
    if (root()) evaluation_.validation().log_graphs(state_.trained_on);
    const std::string split = split_family_warning(setup_.folds);
    if (root() && !split.empty()) spdlog::warn("{}", split);
    if (root()) warn_of_idle_settings();
    for (const std::string& graph : setup_.data.left_out()) {
      if (root()) spdlog::warn("data.entropy_filter leaves nothing of {}: it is left out", graph);
    }
    for (const int fold : empty_folds(setup_.folds, setup_.data)) {
      if (root()) {
        spdlog::warn("fold {} has no training graph of {}: its members train on all of them", fold,
                     experiment_.data.collection.name);
      }
    }
  }

  // Records the graphs that members know; when resumed, first reads those of init_from again.
  void record_graphs() {
    const std::filesystem::path file = run_.path() / kSeenGraphsFile;
    try {
      if (state_.step > 0 && std::filesystem::exists(file))
        state_.trained_on = read_seen_graphs(file).trained_on;
    } catch (const Error& error) {
      spdlog::warn("{}; what train.init_from was trained on is not known then", error.what());
    }
    for (int g = 0; g < setup_.data.size(); ++g) {
      std::vector<bool> members;
      for (int m = 0; m < experiment_.ensemble.members; ++m)
        members.push_back(!setup_.planner.held_out(m, g));
      state_.trained_on.add(setup_.data.entry(g), members);
    }
    SeenGraphs seen = seen_graphs(setup_.data);
    seen.trained_on = state_.trained_on;
    write_file_atomically(file, seen_graphs_text(seen));
  }

  // Warns of settings without effect.
  void warn_of_idle_settings() const {
    if (experiment_.ensemble.folds > 0 && !experiment_.ensemble.holds_out())
      spdlog::warn("ensemble.folds: nothing is held out, since `fold` is not in ensemble.vary");
    if (experiment_.train.evaluate_every > 0 && !evaluation_.validation().has_graphs())
      spdlog::warn(
          "train.evaluate_every: nothing is scored, since {} has no graphs in its validation split "
          "(`tpudist inspect {}` lists what there is)",
          experiment_.data.collection.name, shell_word(experiment_.data.shards.string()));
    const std::int64_t steps = experiment_.train.steps;
    const AverageConfig& average = experiment_.train.average;
    const std::int64_t last_point = steps / average.every * average.every;
    if (steps > 0 && average.kind != AverageKind::none && !average.takes(last_point, steps)) {
      spdlog::warn(
          "train.average: none of {} steps is a point, so the weights of the last step are scored: "
          "give a smaller train.average.every",
          steps);
    }
    const ScheduleConfig& schedule = experiment_.schedule;
    if (schedule.cycles > 1 && steps > 0 && steps < 2 * schedule.cycles) {
      spdlog::warn(
          "schedule.cycles: {} cycles in {} steps are less than two steps each, so the learning "
          "rate does not go up and down",
          schedule.cycles, steps);
    }
  }

  void log_layers() const {
    std::vector<Slate> slates;
    for (const SlateRows& slate : computed_together(experiment_, largest_unit(setup_)))
      slates.push_back(setup_.data.slate(slate.graph, slate.rows));
    const PlanComparison plans = setup_.units.compare(slates, largest_draw(experiment_));
    spdlog::info("layers, and their rows in the largest unit against a dense plan's:");
    for (const std::string& line : layer_lines(setup_, plans)) spdlog::info("  {}", line);
  }

  // Whether the run goes on from a checkpoint.
  bool restored() {
    if (!checkpoints_.restore(state_)) return false;
    for (int member : failed_members(experiment_.ensemble, state_)) {
      if (root()) spdlog::warn("member {} failed before and stays left out", member);
    }
    return true;
  }

  // Saves nothing: the existing checkpoints are of healthy members.
  void stop_if_all_failed() const {
    if (!state_.all_failed()) return;
    throw Error(ErrorKind::failed,
                fmt::format("no member is left at step {}: loss, gradient or scores of each of "
                            "the {} were not finite; try a smaller optimizer.lr, a "
                            "schedule.warmup or an optimizer.clip_norm",
                            state_.step, state_.failed.size()));
  }

  // If the folder was renamed during training, the run goes on under the new name.
  void save() {
    const std::filesystem::path moved = root() ? claim_->new_folder() : "";
    if (!moved.empty() && moved != run_.path()) {
      spdlog::warn("{}: was moved; the run goes on in {}", run_.path().string(), moved.string());
      run_ = RunFolder(moved);
    }
    require_equal_on_all_ranks(context_.world, last_bits_, what_must_be_equal());
    checkpoints_.save(state_);
  }

  void one_step(const StepWork& next, Clock::time_point begin, double wait) {
    const StepResult result = step_.run(next, state_);
    last_bits_ = result.bits;
    const double seconds = seconds_since(begin);
    state_.train_seconds += seconds;
    wait_seconds_ += wait;
    StepTimes times = step_.times();
    times.data_wait = wait;
    report_.step(result, state_, seconds, times);
    forecast(next, seconds, times);
    checkpoints_.log_failures();
    stop_if_all_failed();
    const TrainConfig& train = experiment_.train;
    const bool checkpoint_is_due =
        train.checkpoint_every > 0 && state_.step % train.checkpoint_every == 0;
    const bool last = state_.step == train.steps;
    if (!last) evaluation_.step();  // first: the checkpoint has its best scores and early stops
    if (!last && checkpoint_is_due) save();
    if (checkpoints_.seconds() > 0) limit_.wrote_checkpoint(checkpoints_.seconds());
  }

  const Experiment& experiment_;
  RunFolder run_;
  RunClaim* const claim_;  // null except on rank 0
  JobContext& context_;
  const std::function<bool()>& stop_requested_;
  const TrainingSetup setup_;
  const StepBuilder builder_;
  RunCheckpoints checkpoints_;
  RunReport report_;
  TrainingStep step_;
  TrainingState state_;
  TimeLimit limit_;
  RunEvaluation evaluation_;
  std::uint64_t last_bits_ = 0;  // StepResult::bits of the last step
  double wait_seconds_ = 0;
  MeasuredSteps measured_;  // the first steps after the start
  int steps_to_measure_ = 0;
  bool warmed_up_ = false;
};

}  // namespace

TrainOutcome train(const Experiment& experiment, const std::filesystem::path& run, bool resume,
                   JobContext& context, const std::function<bool()>& stop_requested) {
  std::optional<RunClaim> claim;
  run_on_first_rank(context.world, [&] { claim.emplace(run, resume); });
  try {
    return TrainingRun(experiment, run, claim ? &*claim : nullptr, context, stop_requested)
        .run(resume);
  } catch (...) {
    // Ranks that wait for this rank within a step must learn that it will not come.
    if (context.watchdog) context.watchdog->activity().fail();
    throw;
  }
}

}  // namespace tpudist
