#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/process.hpp"
#include "data/shards/manifest.hpp"
#include "dist/health/stop_signal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/job.hpp"
#include "launch/program/output.hpp"
#include "launch/sweep/sweep_file.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/forecast.hpp"
#include "train/loop/trainer.hpp"

namespace tpudist {
namespace {

constexpr const char* kInterruptNotice =
    "\ntpudist: stopping with a checkpoint after this step; interrupt again to end at once\n";

struct TrainArguments {
  std::filesystem::path config, run_dir, trace;
  std::vector<std::string> overrides;
  bool resume = false, dry_run = false;
  std::vector<int> ranks;    // of the dry run
  std::vector<double> link;  // us and GB/s
};

void print_outcome(const TrainOutcome& outcome, const Experiment& experiment) {
  const std::filesystem::path& run = outcome.folder;
  if (outcome.evaluation) print("\n{}", evaluation_table(*outcome.evaluation));
  const bool unscored = !outcome.evaluation && !outcome.stopped;
  if (unscored && !outcome.has_validation) {
    print("\nnot scored: {} has no graphs in its validation split\n",
          experiment.data.collection.name);
  } else if (unscored && experiment.train.last_evaluation == LastEvaluation::none) {
    print("\nnot scored (train.last_evaluation: none); `tpudist evaluate {}` scores the run\n",
          shell_word(run.string()));
  }
  if (!outcome.out_of_fold.empty()) {
    print("\nout of fold ({}, mean over the graphs that a member never saw)\n",
          primary_metric(experiment.data.collection.name).name);
    for (const MemberScores::OutOfFold& score : outcome.out_of_fold) {
      print("  member {}  fold {}  {:.4f}  {}\n", score.number, score.fold, score.score,
            counted(score.graphs, "graph"));
    }
  }
  for (int member : outcome.failed)
    print("member {} failed: its loss or gradient was not finite, and it is left out\n", member);
  for (const EarlyStopped& stopped : outcome.stopped_early) {
    print(
        "member {} stopped at step {} (train.early_stop); its best score, {:.4f} at step {}, was "
        "chosen on the graphs it is measured on and is optimistic\n",
        stopped.member, stopped.step, stopped.best_score, stopped.best_step);
  }
  // One call: mpirun may insert standard error between two calls.
  print(
      "\n{}steps: {}\ntraining: {:.1f} s, of these waiting for data {:.2f} s ({:.2f} %)\n"
      "peak memory: {} (rank 0){}\nrun: {}\nparameters: {}\n",
      outcome.average_hash ? fmt::format("averages: {}\n", to_hex(*outcome.average_hash)) : "",
      outcome.steps, outcome.train_seconds, outcome.wait_seconds,
      outcome.train_seconds > 0 ? 100 * outcome.wait_seconds / outcome.train_seconds : 0.0,
      format_bytes(peak_resident_bytes()),
      outcome.device_bytes ? fmt::format(", and {} of its GPU", format_bytes(outcome.device_bytes))
                           : "",
      run.string(), to_hex(outcome.parameter_hash));
}

std::string next_commands(const TrainOutcome& outcome) {
  const std::string word = shell_word(outcome.folder.string());
  return fmt::format(
      "next:\n  tpudist evaluate {0}{1}each graph's score, of each member and of all\n"
      "  tpudist report {0}                   a page with curves and scores\n"
      "  tpudist rank MODULE.npz --run {0}    the configurations of a new module, best first",
      word, outcome.has_validation ? "                 " : " --split train   ");
}

// The settings that differ from their defaults, or with --verbose all of them.
std::string settings_text(const Experiment& experiment, const std::filesystem::path& file) {
  std::vector<ConfigEntry> shown = experiment.entries;
  if (verbosity() != Verbosity::verbose) {
    std::erase_if(shown, [](const ConfigEntry& entry) { return entry.is_default; });
    for (ConfigEntry& entry : shown) entry.is_default = true;  // no marks if all had a mark
  }
  const std::size_t hidden = experiment.entries.size() - shown.size();
  return fmt::format(
      "{}\n{}{}\n", file.string(), format_entries(shown),
      hidden == 0
          ? ""
          : fmt::format("at their defaults: {} (--verbose shows all, as config.yaml has them)\n",
                        counted(static_cast<std::int64_t>(hidden), "more setting")));
}

std::vector<AgreedValue> values_to_agree(const TrainArguments& arguments,
                                         const Experiment& experiment) {
  std::vector<AgreedValue> values{{"the command", arguments.dry_run ? "train --dry-run" : "train"},
                                  {"--run-dir", arguments.run_dir.string()},
                                  {"--trace", arguments.trace.string()},
                                  {"--resume", arguments.resume ? "given" : "not given"},
                                  {"--ranks", fmt::format("{}", fmt::join(arguments.ranks, ","))},
                                  {"--link", fmt::format("{}", fmt::join(arguments.link, ","))}};
  std::ranges::move(values_to_agree(experiment), std::back_inserter(values));
  return values;
}

RankRequest asked_ranks(const TrainArguments& arguments) {
  constexpr std::size_t kMost = 16;
  RankRequest asked{arguments.ranks, std::nullopt};
  std::ranges::sort(asked.ranks);
  const auto twice = std::ranges::adjacent_find(asked.ranks);
  if (twice != asked.ranks.end()) refuse_value("--ranks", fmt::format("{} is given twice", *twice));
  if (asked.ranks.size() > kMost)
    refuse_value("--ranks", fmt::format("at most {} numbers are compared", kMost));
  if (!asked.ranks.empty() && asked.ranks.front() > 1) asked.ranks.insert(asked.ranks.begin(), 1);
  if (arguments.link.empty()) return asked;
  if (arguments.link.size() != 2) refuse_value("--link", "give two numbers: us and GB/s");
  asked.links = LinkSpeed{1e-6 * arguments.link[0], 1e9 * arguments.link[1]};
  return asked;
}

// Refuses split placement: only the sweep command makes such runs.
void require_fused_members(const Experiment& experiment) {
  if (!experiment.ensemble.split) return;
  throw ConfigError(
      "ensemble.placement: split trains members in runs of their own, which `tpudist sweep run` "
      "does; `train` takes ensemble.placement=fused");
}

void run(const TrainArguments& arguments) {
  if (is_sweep_file(arguments.config, arguments.overrides)) {
    throw ConfigError(fmt::format(
        "{} is a sweep file, not an experiment file: `tpudist sweep run {}` trains its runs",
        arguments.config.string(), shell_word(arguments.config.string())));
  }
  const RankRequest asked = asked_ranks(arguments);
  const Experiment experiment = load_experiment(arguments.config, arguments.overrides);
  require_fused_members(experiment);
  const std::filesystem::path folder = arguments.run_dir.empty()
                                           ? std::filesystem::path("runs") / experiment.name
                                           : arguments.run_dir;
  bool stopped = false;
  const JobOptions options{experiment.dist.device,     experiment.dist.threads,
                           experiment.dist.mixed_cpus, experiment.network.precision,
                           experiment.dist.timeout,    values_to_agree(arguments, experiment)};
  run_job(options, [&](JobContext& context) {
    const bool root = context.world.rank() == 0;
    run_on_all_ranks(context.world, [&] {
      require_shards(
          experiment.data.shards, experiment.data.collection,
          "give data.shards=FOLDER, or set TPUDIST_DATA for an experiment that takes it");
    });
    if (root && verbosity() != Verbosity::quiet) {
      print("{}{} rank{} on {} node{}, {} thread{} each, {}\n",
            settings_text(experiment, arguments.config), context.world.size(),
            context.world.size() == 1 ? "" : "s", context.topology.nodes,
            context.topology.nodes == 1 ? "" : "s", context.pool.threads(),
            context.pool.threads() == 1 ? "" : "s", context.topology.device >= 0 ? "CUDA" : "CPU");
    }
    if (arguments.dry_run) {
      if (root) print("\n");
      dry_run(experiment, folder, arguments.resume, asked, context, print_text);
      return;
    }
    const TracedJob traced(context, arguments.trace);
    const StopSignal signal(root ? kInterruptNotice : "");
    const TrainOutcome outcome =
        train(experiment, folder, arguments.resume, context, [&] { return signal.requested(); });
    stopped = outcome.stopped;
    if (root) print_outcome(outcome, experiment);
    traced.write();
    if (root && stopped) {
      print("stopped {} after step {}; go on with --resume\n",
            outcome.out_of_time ? "for lack of time (train.time_limit, or the end of the Slurm job)"
                                : "on request",
            outcome.steps);
    }
    if (root && !stopped) context.progress.line(next_commands(outcome));
    context.world.barrier();
  });
  if (stopped) throw EndWith(static_cast<int>(ErrorKind::stopped));
}

}  // namespace

void add_train_command(Command app) {
  auto arguments = std::make_shared<TrainArguments>();
  const Command command = app.add_command("train", "Train an ensemble as an experiment file says");
  command.footer(
      "Start it under mpirun or srun for several ranks; the trained parameters have the same bits "
      "for any number of\nranks and threads. SIGUSR1, SIGUSR2, SIGTERM, SIGHUP or Ctrl-C asks it "
      "to write a checkpoint and stop (exit\ncode 85); under mpirun use SIGUSR2: mpirun answers "
      "the last three by killing the ranks.\n\n"
      "Example:\n  mpirun -np 8 tpudist train experiments/nlp.yaml train.steps=1000 --run-dir "
      "runs/nlp-1");
  command.add_option("config", arguments->config, "Experiment file (YAML)")
      .required()
      .existing_experiment();
  command.add_option("overrides", arguments->overrides, "key=value pairs, e.g. train.steps=100");
  command.add_option("--run-dir", arguments->run_dir, "Folder of the run (default: runs/<name>)");
  command.add_flag("--resume", arguments->resume,
                   "Go on from the run's newest checkpoint; starts a new run when there is none. "
                   "See also tpudist diff");
  const Option trace = add_trace_option(command, arguments->trace);
  const Option dry_run =
      command.add_flag("--dry-run", arguments->dry_run,
                       "Print the plan of work, memory and time, and write nothing");
  dry_run.excludes(trace);
  const Option ranks =
      command
          .add_option("--ranks", arguments->ranks,
                      "With --dry-run: plan and time for so many ranks, without starting them; a "
                      "list such as 1,4,16 compares them")
          .needs(dry_run)
          .split_word(',')
          .in_range(1, 1 << 16);
  command
      .add_option("--link", arguments->link,
                  "With --ranks: microseconds of a message and GB/s of each rank, e.g. 2,12 "
                  "(default: measured between several started ranks, else 30,1.2)")
      .split_word(',')
      .positive()
      .needs(ranks);
  command.run([arguments] { run(*arguments); });
}

}  // namespace tpudist
