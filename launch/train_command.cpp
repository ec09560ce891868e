#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/memory.hpp"
#include "core/numbers.hpp"
#include "dist/stop_signal.hpp"
#include "launch/commands.hpp"
#include "launch/job.hpp"
#include "launch/output.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/dry_run.hpp"
#include "train/loop/trainer.hpp"

namespace tpudist {
namespace {

struct Arguments {
  std::filesystem::path config, run_dir;
  std::vector<std::string> overrides;
  bool resume = false, dry_run = false;
};

// Rank 0 makes the folder, the others open it.
RunFolder open_folder(const Arguments& arguments, const Experiment& experiment,
                      JobContext& context) {
  const std::filesystem::path path = arguments.run_dir.empty()
                                         ? std::filesystem::path("runs") / experiment.name
                                         : arguments.run_dir;
  const bool goes_on = arguments.resume && RunFolder::exists(path);
  run_on_all_ranks(context.world, [&] {
    if (context.world.rank() == 0 && !goes_on) RunFolder::create(path, experiment.resolved_yaml);
  });
  return RunFolder::open(path);
}

void print_outcome(const TrainOutcome& outcome, const Experiment& experiment,
                   const RunFolder& run) {
  if (outcome.evaluation) {
    print("\n{}", evaluation_table(*outcome.evaluation));
    write_file_atomically(run.scores(), evaluation_json(*outcome.evaluation).dump(2) + "\n");
  }
  if (!outcome.evaluation && !outcome.stopped &&
      experiment.train.last_evaluation == LastEvaluation::none) {
    print("\nnot scored (train.last_evaluation: none); `tpudist evaluate {}` scores the run\n",
          run.path().string());
  }
  print(
      "\nsteps: {}\ntraining: {:.1f} s, of these waiting for data {:.2f} s ({:.2f} %)\n"
      "peak memory: {} (rank 0)\nrun: {}\nparameters: {}\n",
      outcome.steps, outcome.train_seconds, outcome.wait_seconds,
      outcome.train_seconds > 0 ? 100 * outcome.wait_seconds / outcome.train_seconds : 0.0,
      format_bytes(peak_resident_bytes()), run.path().string(), to_hex(outcome.parameter_hash));
}

void run(const Arguments& arguments) {
  ConfigDocument document = ConfigDocument::load(arguments.config, arguments.overrides);
  const Experiment experiment = read_experiment(document);
  bool stopped = false;
  run_job({experiment.dist.device, experiment.dist.threads}, [&](JobContext& context) {
    const bool root = context.world.rank() == 0;
    if (root) {
      print("{}\n{} rank{} on {} node{}, {} thread{} each, {}\n", experiment.resolved_table,
            context.world.size(), context.world.size() == 1 ? "" : "s", context.place.nodes,
            context.place.nodes == 1 ? "" : "s", context.pool.threads(),
            context.pool.threads() == 1 ? "" : "s", context.place.device >= 0 ? "CUDA" : "CPU");
      std::fflush(stdout);
    }
    if (arguments.dry_run) {
      if (root) print("\n{}", describe_work(experiment, context.world.size()));
      return;
    }
    const RunFolder folder = open_folder(arguments, experiment, context);
    const StopSignal signal;
    const TrainOutcome outcome =
        train(experiment, folder, arguments.resume, context, [&] { return signal.requested(); });
    stopped = outcome.stopped;
    if (root) print_outcome(outcome, experiment, folder);
    if (root && stopped) {
      print("stopped on request after step {}; go on with --resume\n", outcome.steps);
    }
    std::fflush(stdout);
    context.world.barrier();
  });
  if (stopped) throw CLI::RuntimeError(static_cast<int>(ErrorKind::stopped));
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("train", "Train an ensemble as an experiment file says");
  command->footer(
      "Start it under mpirun or srun for several ranks; the trained parameters have the same bits "
      "for any number of\n"
      "ranks and threads. SIGUSR2 asks it to write a checkpoint and stop (exit code 85).\n\n"
      "Example:\n  mpirun -np 8 tpudist train experiments/nlp.yaml train.steps=1000 --run-dir "
      "runs/nlp-1");
  command->add_option("config", arguments->config, "Experiment file (YAML)")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("overrides", arguments->overrides, "key=value pairs, e.g. train.steps=100");
  command->add_option("--run-dir", arguments->run_dir, "Folder of the run (default: runs/<name>)");
  command->add_flag("--resume", arguments->resume,
                    "Go on from the run's newest checkpoint; starts a new run when there is none");
  command->add_flag("--dry-run", arguments->dry_run,
                    "Print the plan of work and memory, and train nothing");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace tpudist
