#include "launch/sweep/sweep_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "core/failed_device.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/process.hpp"
#include "core/progress.hpp"
#include "core/text.hpp"
#include "launch/sweep/sweep_tables.hpp"
#include "results/records/run_folder.hpp"
#include "results/scores/member_scores.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/trainer.hpp"

namespace tpudist {
namespace {

// Passes on all progress with a label before each title and line, to tell apart groups of ranks
// that work side by side.
class LabelledProgress : public ProgressSink {
 public:
  // `sink` is borrowed.
  LabelledProgress(ProgressSink& sink, std::string label) : sink_(sink), label_(std::move(label)) {}

  void start(std::string_view title, std::int64_t total, std::string_view unit) override {
    sink_.start(fmt::format("{}: {}", label_, title), total, unit);
  }
  void advance(std::int64_t count, std::string_view note) override { sink_.advance(count, note); }
  void line(std::string_view text) override { sink_.line(fmt::format("{}: {}", label_, text)); }
  void finish() override { sink_.finish(); }

 private:
  ProgressSink& sink_;
  std::string label_;
};

using std::chrono::milliseconds;

// Ranks of other groups may take days.
constexpr milliseconds kForever = std::chrono::hours(24 * 365);
// How long a failed rank waits for the other ranks of its group to leave the run, if it cannot see
// their status.
constexpr milliseconds kPatience{60'000};
// The time between two checks of runs that other processes train.
constexpr milliseconds kPause{500};

int exit_code_of(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  return known ? known->exit_code() : static_cast<int>(ErrorKind::failed);
}

// The ranks of a group cannot be brought together again.
class GroupStuck : public DistError {
 public:
  using DistError::DistError;
};

// The next action of a group.
struct Next {
  enum class Kind : std::int64_t { train, nothing_left, stop };
  Kind kind = Kind::nothing_left;
  SweepRun run;          // to train
  RunClaimFile claim;    // on the group's first rank
  bool resumes = false;  // the run was begun before
};

// The ranks that train one run after another together.
class Group {
 public:
  Group(const SweepFolder& folder, const SweepJobOptions& options, Communicator& team,
        JobContext& job, ProgressSink& progress, const std::function<bool()>& stop_requested)
      : folder_(folder),
        options_(options),
        team_(team),
        control_(team.split(0)),
        job_(job),
        progress_(progress),
        stop_requested_(stop_requested) {}

  SweepOutcome run() {
    SweepOutcome outcome;
    try {
      for (;;) {
        const Next next = agree_on_next();
        if (next.kind == Next::Kind::stop) outcome.stopped = true;
        if (next.kind != Next::Kind::train) break;
        train_run(next.run, next.resumes, outcome);
        if (outcome.stopped) break;
      }
    } catch (const GroupStuck&) {
      throw;
    } catch (const std::exception& error) {  // the same on all ranks of the group
      if (root()) spdlog::error("{}", error.what());
      outcome.group_lost = true;
    }
    return outcome;
  }

 private:
  bool root() const { return team_.rank() == 0; }

  // The first rank decides; it may wait for other processes. Throws the same on all ranks.
  Next agree_on_next() {
    Next next;
    std::exception_ptr error;
    try {
      if (root()) next = choose_next();
    } catch (const std::exception&) {
      error = std::current_exception();
    }
    control_->wait_for_all(kForever);
    run_on_all_ranks(*control_, [&] {
      if (error) std::rethrow_exception(error);
    });
    std::string run = nlohmann::json(next.run).dump();
    std::array<std::int64_t, 3> numbers{static_cast<std::int64_t>(next.kind), next.resumes,
                                        std::ssize(run)};
    control_->broadcast(std::span<std::int64_t>(numbers), 0);
    run.resize(static_cast<std::size_t>(numbers[2]));
    control_->broadcast(std::span<char>(run), 0);
    next.kind = static_cast<Next::Kind>(numbers[0]);
    next.resumes = numbers[1] != 0;
    next.run = nlohmann::json::parse(run).get<SweepRun>();
    return next;
  }

  Next choose_next() {
    job_.enter("choice of a run");
    if (options_.index && done_) return {};  // even on request: Slurm would start the task again
    if (stop_requested_()) return {Next::Kind::stop, {}, nullptr, false};
    if (options_.index) return choose_index(*options_.index);
    const int stages = static_cast<int>(folder_.record().stages.size());
    for (int stage = 0; stage < stages;) {
      const std::vector<SweepRun> runs = known_stage(stage);
      bool all_ended = true;
      for (const SweepRun& run : runs) {
        if (has_ended(run)) continue;
        all_ended = false;
        if (Next next = take(run); next.kind == Next::Kind::train) return next;
      }
      if (all_ended) {
        ++stage;
        continue;
      }
      if (stage + 1 == stages) break;  // other processes train the remaining runs
      std::this_thread::sleep_for(kPause);
      job_.advance();
      if (stop_requested_()) return {Next::Kind::stop, {}, nullptr, false};
    }
    return {};
  }

  Next choose_index(int index) {
    done_ = true;
    const auto& stages = folder_.record().stages;
    for (int stage = 0; stage < static_cast<int>(stages.size()); ++stage) {
      const Stage& place = stages[stage];
      if (index < place.first || index >= place.first + place.count) continue;
      const std::vector<SweepRun> runs = known_stage(stage);
      const auto at = static_cast<std::size_t>(index - place.first);
      if (at >= runs.size()) {
        spdlog::info("run {} is not needed: {} has {}", index, place.name,
                     counted(std::ssize(runs), "run"));
        return {};
      }
      const auto ended = folder_.result(runs[at]);
      if (ended && ended->finished) {
        spdlog::info("{} is finished already", name_of(runs[at]));
        return {};
      }
      folder_.forget_failure(runs[at]);
      if (Next next = take(runs[at]); next.kind == Next::Kind::train) return next;
      throw InUseError(name_of(runs[at]) + " is being trained by another process");
    }
    const Stage& last = stages.back();
    throw ConfigError(fmt::format("there is no run {}: the sweep has runs 0 to {}", index,
                                  last.first + last.count - 1));
  }

  const std::string& stage_name(int stage) const { return folder_.record().stages[stage].name; }

  // The runs of a stage; freezes them if the runs of the stage before have ended.
  std::vector<SweepRun> known_stage(int stage) {
    for (;;) {
      if (auto runs = folder_.stage_runs(stage)) return *runs;
      const auto before = folder_.stage_runs(stage - 1);
      const auto ended = [&](const SweepRun& run) { return has_ended(run); };
      if (!before || !std::ranges::all_of(*before, ended)) {
        throw Error(ErrorKind::failed,
                    fmt::format("the runs of \"{}\" are not known before all those of \"{}\" have "
                                "ended; see `tpudist sweep status {}`",
                                stage_name(stage), stage_name(stage - 1),
                                shell_word(folder_.path().string())));
      }
      if (!options_.go_on) require_none_failed(*before, stage);
      try {
        folder_.freeze_stage(stage);
      } catch (const InUseError&) {
        std::this_thread::sleep_for(kPause);
      }
    }
  }

  void require_none_failed(const std::vector<SweepRun>& before, int stage) const {
    std::vector<std::string> failed;
    for (const SweepRun& run : before)
      if (folder_.state(run) == RunState::failed) failed.push_back(std::to_string(run.index));
    if (failed.empty()) return;
    throw Error(
        ErrorKind::failed,
        fmt::format("\"{}\" does not begin, because run{} {} of \"{}\" failed; see `tpudist sweep "
                    "status {}`, then `tpudist sweep retry`, or go on without with --go-on",
                    stage_name(stage), failed.size() == 1 ? "" : "s", join(failed, ", "),
                    stage_name(stage - 1), shell_word(folder_.path().string())));
  }

  // Whether a run has a result. The file of a finished run is read once; a failed run may be
  // retried at any time (`sweep retry`).
  bool has_ended(const SweepRun& run) {
    if (finished_.contains(run.id)) return true;
    const std::optional<RunResult> result = folder_.result(run);
    if (result && result->finished) finished_[run.id] = result->train_seconds;
    return result.has_value();
  }

  // Claims a run; returns `nothing_left` if another process has it.
  Next take(const SweepRun& run) {
    RunClaimFile claim = folder_.claim(run);
    // The run may have ended since its result was read.
    if (!claim || folder_.result(run)) return {};
    try {
      progress_.line(folder_.record().name + ": " + how_far(folder_, finished_));
    } catch (const Error&) {  // a fault of another run
    }
    return {Next::Kind::train, folder_.checked(run), std::move(claim),
            RunFolder::exists(folder_.run_folder(run))};
  }

  void train_run(const SweepRun& run, bool resume, SweepOutcome& outcome) {
    LabelledProgress labelled(progress_, fmt::format("run {}", run.index));
    labelled.line(fmt::format("{} ({}) {}", run.id, folder_.record().text_of(run),
                              resume ? "goes on" : "begins"));
    JobContext context{team_, job_.pool, job_.topology, labelled, job_.watchdog};
    context.commit = job_.commit;
    context.trained_before = outcome.finished + outcome.failed > 0;
    TrainOutcome trained;
    std::string error;
    int exit_code = 0;
    try {
      ConfigDocument document = ConfigDocument::parse(run.config, "sweep.json");
      const Experiment experiment = read_experiment(document);
      trained = train(experiment, folder_.run_folder(run), resume, context, stop_requested_);
    } catch (const std::exception& problem) {
      error = problem.what();
      exit_code = exit_code_of(problem);
    }
    if (device_has_failed && control_->size() > 1) {
      throw GroupStuck(fmt::format("{}: {}; a rank whose GPU has failed cannot take the next run",
                                   name_of(run), error));
    }
    const auto in_vain = [&] { return job_.watchdog && job_.watchdog->others_wait_in_vain(); };
    if (!control_->wait_for_all(exit_code == 0 ? kForever : kPatience, in_vain)) {
      throw GroupStuck(
          fmt::format("{}: {}; the other ranks of its group wait for this one and cannot go on",
                      name_of(run), error));
    }
    if (job_.watchdog) {
      job_.watchdog->leave();
      job_.watchdog->activity().forget_failure();
    }
    const std::vector<std::string> errors = all_gather_text(*control_, error);
    std::int64_t worst = exit_code;
    control_->all_reduce(std::span(&worst, 1), ReduceOp::max);
    if (worst == 0 && trained.stopped) {
      outcome.stopped = true;
      return;
    }
    // A result that cannot be written ends the group, on all of its ranks.
    run_on_all_ranks(*control_, [&] {
      if (!root()) return;
      const RunResult result =
          worst == 0 ? finished(run, trained) : failed(run, errors, static_cast<int>(worst));
      write_result(folder_.result_file(run), result);
      log_result(labelled, run, result);
    });
    ++(worst == 0 ? outcome.finished : outcome.failed);
    if (device_has_failed)
      throw DistError("the GPU of this rank has failed: it leaves the other runs to others");
  }

  RunResult finished(const SweepRun& run, const TrainOutcome& trained) const {
    RunResult result;
    result.id = run.id;
    result.inputs = run.inputs;
    result.finished = true;
    result.parameters = to_hex(trained.parameter_hash);
    result.steps = trained.steps;
    result.train_seconds = trained.train_seconds;
    result.host = host_name();
    result.members = read_member_results(RunFolder(folder_.run_folder(run)).scores(),
                                         run.collection, run.first_member, run.members);
    for (int number : trained.failed) result.members.at(number - run.first_member).failed = true;
    return result;
  }

  static RunResult failed(const SweepRun& run, const std::vector<std::string>& errors, int code) {
    RunResult result;
    result.id = run.id;
    result.exit_code = code;
    result.host = host_name();
    const auto first = std::ranges::find_if(errors, [](const auto& e) { return !e.empty(); });
    if (first != errors.end()) result.error = *first;
    return result;
  }

  void log_result(ProgressSink& sink, const SweepRun& run, const RunResult& result) const {
    if (!result.finished) {
      spdlog::error("{} failed: {}", name_of(run), result.error);
      return;
    }
    const auto score = [](const char* name, std::optional<double> value) {
      return value ? fmt::format(", {} {:.4f}", name, *value) : std::string();
    };
    sink.line(fmt::format("finished: parameters {}{}{}, {} of training", result.parameters,
                          score("valid", result.valid()),
                          score("out of fold", result.out_of_fold()),
                          format_seconds(result.train_seconds)));
  }

  const SweepFolder& folder_;
  const SweepJobOptions& options_;
  Communicator& team_;
  // Separate from the team's own communicator, in which failed ranks may have left messages.
  const std::unique_ptr<Communicator> control_;
  JobContext& job_;
  ProgressSink& progress_;
  const std::function<bool()>& stop_requested_;
  // Seconds of the runs known to have finished, by id; on the first rank.
  std::map<std::string, double> finished_;
  bool done_ = false;  // the requested run has been handled
};

}  // namespace

std::vector<int> group_of_ranks(const std::vector<int>& sizes, int ranks) {
  std::vector<int> groups;
  if (sizes.empty()) return std::vector<int>(static_cast<std::size_t>(ranks), 0);
  if (std::ranges::min(sizes) < 1) throw ConfigError("--groups: a group has at least one rank");
  int group = 0;
  for (; static_cast<int>(groups.size()) < ranks; ++group) {
    const int size = sizes[std::min(static_cast<std::size_t>(group), sizes.size() - 1)];
    const int left = ranks - static_cast<int>(groups.size());
    if (left < size && group < static_cast<int>(sizes.size()))
      throw ConfigError(fmt::format(
          "--groups: group {} has {} ranks, but of the job's {} only {} left for it; start more "
          "ranks, or give smaller groups",
          group, size, counted(ranks, "rank"), left == 1 ? "1 is" : fmt::format("{} are", left)));
    groups.insert(groups.end(), static_cast<std::size_t>(std::min(size, left)), group);
  }
  if (group < static_cast<int>(sizes.size())) {
    throw ConfigError(fmt::format("--groups: {} sizes, but the {} ranks fill {} groups only",
                                  sizes.size(), ranks, group));
  }
  return groups;
}

SweepOutcome run_sweep(const SweepFolder& folder, const SweepJobOptions& options,
                       JobContext& context, const std::function<bool()>& stop_requested) {
  const std::vector<int> groups = group_of_ranks(options.group_sizes, context.world.size());
  const int group = groups[context.world.rank()];
  const bool several = groups.back() > 0;
  const std::unique_ptr<Communicator> team = context.world.split(group);
  // Live bars of several groups would overwrite each other.
  ProgressBar::Options lines_only;
  lines_only.terminal = 0;
  ProgressBar plain(lines_only);
  NoProgress none;
  const bool shows = team->rank() == 0 && verbosity() != Verbosity::quiet;
  ProgressSink& own = shows ? static_cast<ProgressSink&>(plain) : none;
  const SweepOutcome mine =
      Group(folder, options, *team, context, several ? own : context.progress, stop_requested)
          .run();
  context.world.wait_for_all(kForever);
  const bool root = team->rank() == 0;
  std::array<std::int64_t, 4> sums{root ? mine.finished : 0, root ? mine.failed : 0,
                                   mine.stopped ? 1 : 0, mine.group_lost ? 1 : 0};
  context.world.all_reduce(std::span<std::int64_t>(sums), ReduceOp::sum);
  return {static_cast<int>(sums[0]), static_cast<int>(sums[1]), sums[2] > 0, sums[3] > 0};
}

}  // namespace tpudist
