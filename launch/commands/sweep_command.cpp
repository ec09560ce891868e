#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/process.hpp"
#include "dist/health/stop_signal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/job.hpp"
#include "launch/program/output.hpp"
#include "launch/sweep/slurm_submission.hpp"
#include "launch/sweep/sweep_file.hpp"
#include "launch/sweep/sweep_folder.hpp"
#include "launch/sweep/sweep_job.hpp"
#include "launch/sweep/sweep_plan.hpp"
#include "launch/sweep/sweep_tables.hpp"
#include "results/scores/comparison_text.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStopNotice =
    "\ntpudist: stopping with checkpoints after this step; interrupt again to end at once\n";

struct SweepArguments {
  fs::path sweep;  // a sweep file or the folder of a sweep
  std::vector<std::string> overrides;
  fs::path dir, csv, json;
  std::vector<int> groups;
  int index = -1;
  std::vector<int> runs;
  bool go_on = false, take_back = false;
  SlurmOptions slurm;
  bool dry_run = false;
};

// The folder of a sweep file: --dir, or from the sweep's name.
fs::path folder_of(const SweepArguments& arguments) {
  if (!arguments.dir.empty()) return arguments.dir;
  return fs::path("sweeps") / SweepFile::load(arguments.sweep, arguments.overrides).name;
}

// Opens the folder for commands that need an expanded sweep.
SweepFolder open_folder(const SweepArguments& arguments) {
  if (fs::is_directory(arguments.sweep)) return SweepFolder::open(arguments.sweep);
  const fs::path folder = folder_of(arguments);
  throw ConfigError(fmt::format(
      "{} is a sweep file: {}", arguments.sweep.string(),
      fs::exists(folder / "sweep.json")
          ? fmt::format("give the folder that it was expanded into, {}", folder.string())
          : fmt::format("it was not expanded into {}; give the folder of `--dir`, or expand it by "
                        "`tpudist sweep expand {}`",
                        folder.string(), shell_word(arguments.sweep.string()))));
}

// Opens a folder; expands a sweep file.
SweepFolder open_or_expand(const SweepArguments& arguments) {
  if (fs::is_directory(arguments.sweep)) {
    if (!arguments.overrides.empty() || !arguments.dir.empty()) {
      throw ConfigError(
          fmt::format("{} is a sweep that is expanded already: --dir and key=value pairs belong to "
                      "`tpudist sweep expand`",
                      arguments.sweep.string()));
    }
    return SweepFolder::open(arguments.sweep);
  }
  const fs::path folder = folder_of(arguments);
  if (!fs::exists(folder / "sweep.json"))
    spdlog::info("{}: expands into {}", arguments.sweep.string(), folder.string());
  return SweepFolder::expand(arguments.sweep, arguments.overrides, folder);
}

void say_next(const SweepFolder& folder, bool collected = false) {
  const std::string next = next_command(folder, collected);
  if (!next.empty()) print_next(next);
}

void expand(const SweepArguments& arguments) {
  const SweepFolder folder =
      SweepFolder::expand(arguments.sweep, arguments.overrides, folder_of(arguments));
  print("{}{}\n", plan_table(folder.record()), (folder.path() / "sweep.json").string());
  const std::string fault = folder.data_fault();
  fault.empty() ? say_next(folder) : spdlog::warn("{}", fault);
}

void require_data(const SweepFolder& folder) {
  if (const std::string fault = folder.data_fault(); !fault.empty()) throw DataError(fault);
}

// Rank 0 makes the folder of a sweep file; all ranks read it.
SweepFolder open_on_all_ranks(const SweepArguments& arguments, Communicator& world) {
  std::optional<SweepFolder> folder;
  run_on_all_ranks(world, [&] {
    if (world.rank() != 0) return;
    folder = open_or_expand(arguments);
    folder->freeze_data();
    if (arguments.index < 0) require_data(*folder);  // a task of an array looks at its own run
  });
  run_on_all_ranks(world, [&] {
    if (world.rank() == 0) return;
    const bool expanded = fs::is_directory(arguments.sweep);
    folder = SweepFolder::open(expanded ? arguments.sweep : folder_of(arguments));
  });
  const AgreedValue list{"sweep.json", to_hex(hash_file(folder->path() / "sweep.json"))};
  require_agreement(world, std::span(&list, 1), "give all ranks the same folder of the sweep");
  return std::move(*folder);
}

// The first run, whose `dist:` and precision hold for the whole job.
Experiment first_run(const SweepArguments& arguments) {
  if (fs::is_directory(arguments.sweep)) {
    const SweepFolder folder = SweepFolder::open(arguments.sweep);
    ConfigDocument document =
        ConfigDocument::parse(folder.record().runs.at(0).config, "sweep.json");
    return read_experiment(document);
  }
  const SweepFile file = SweepFile::load(arguments.sweep, arguments.overrides);
  try {
    return load_experiment(file.experiments.at(0), file.overrides_of(0));
  } catch (const ConfigError&) {
    plan_sweep(file);  // names the place in the sweep file
    throw;
  }
}

void run(const SweepArguments& arguments) {
  SweepOutcome outcome;
  const Experiment first = first_run(arguments);
  const DistConfig& dist = first.dist;
  const JobOptions options{
      .device = dist.device,
      .threads = dist.threads,
      .mixed_cpus = dist.mixed_cpus,
      .precision = first.network.precision,
      .timeout = dist.timeout,
      .agreed = {{"the command", "sweep run"},
                 {"the sweep", arguments.sweep.string()},
                 {"--dir", arguments.dir.string()},
                 {"--groups", fmt::format("{}", fmt::join(arguments.groups, ","))},
                 {"--index", fmt::format("{}", arguments.index)},
                 {"--go-on", fmt::format("{}", arguments.go_on)},
                 {"key=value pairs", fmt::format("{}", fmt::join(arguments.overrides, " "))}}};
  run_job(options, [&](JobContext& context) {
    const SweepFolder folder = open_on_all_ranks(arguments, context.world);
    const bool root = context.world.rank() == 0;
    const StopSignal signal(root ? kStopNotice : "");
    SweepJobOptions job{arguments.groups, std::nullopt, arguments.go_on};
    if (arguments.index >= 0) job.index = arguments.index;
    outcome = run_sweep(folder, job, context, [&] { return signal.requested(); });
    if (root) {
      print("{}\n{} run{} finished here, {} failed\n", status_table(folder), outcome.finished,
            outcome.finished == 1 ? "" : "s", outcome.failed);
      say_next(folder);
    }
    context.world.barrier();
  });
  if (outcome.stopped) throw EndWith(static_cast<int>(ErrorKind::stopped));
  if (outcome.failed > 0 || outcome.group_lost) throw EndWith(static_cast<int>(ErrorKind::failed));
}

void status(const SweepArguments& arguments) {
  const SweepFolder folder = open_folder(arguments);
  const std::string queue = queue_text(folder);
  print("{}{}", status_table(folder), queue);
  if (queue.empty()) say_next(folder);
}

void retry(const SweepArguments& arguments) {
  const SweepFolder folder = open_folder(arguments);
  int freed = 0;
  for (const SweepRun& run : folder.known_runs()) {
    const bool named = arguments.runs.empty() ||
                       std::ranges::find(arguments.runs, run.index) != arguments.runs.end();
    if (!named || folder.state(run) != RunState::failed) continue;
    folder.forget_failure(run);
    ++freed;
  }
  print("{} failed run{} will be trained again\n", freed, freed == 1 ? "" : "s");
  if (arguments.take_back) {
    const std::vector<std::string> names = folder.take_back();
    for (const std::string& name : names)
      print("took back \"{}\": its runs are chosen again; their folders stay\n", name);
    if (names.empty()) print("no choice is stale: nothing was taken back\n");
  } else {
    print("{}", stale_lines(folder));
  }
  say_next(folder);
}

void collect(const SweepArguments& arguments) {
  const SweepFolder folder = open_folder(arguments);
  for (const SweepRun& run : folder.known_runs()) folder.experiment_of(run);
  const ResultSet results = read_results({arguments.sweep});
  print("{}", collect_table(folder));
  if (has_results(folder)) print("\n{}", sweep_interval_text(results));
  if (!arguments.csv.empty()) write_file_atomically(arguments.csv, collect_csv(folder));
  if (!arguments.json.empty()) {
    nlohmann::json json = collect_json(folder);
    json["intervals"] = sweep_interval_json(results);
    json["pairs"] = sweep_pairs_json(results);
    write_file_atomically(arguments.json, json_text(json, 2) + "\n");
  }
  say_next(folder, true);
}

// The program that users call: the launcher of the Python package, or the one beside this one.
std::string program_path() {
  if (const char* launcher = std::getenv("TPUDIST_LAUNCHER")) return launcher;
  return (fs::read_symlink("/proc/self/exe").parent_path() / "tpudist").string();
}

void submit(const SweepArguments& arguments) {
  const SweepFolder folder = open_or_expand(arguments);
  const std::vector<SlurmJob> jobs = slurm_jobs(folder, arguments.slurm, program_path());
  require_data(folder);
  if (!arguments.dry_run) write_slurm_scripts(folder);
  std::vector<std::string> ids;
  for (const SlurmJob& job : jobs) {
    std::vector<std::string> after;
    for (int i : job.after) after.push_back(ids[i]);
    if (arguments.dry_run) {
      ids.push_back(fmt::format("<job {}>", ids.size() + 1));
      print("# {}\n{}\n", job.name, command_line(job, after));
    } else {
      ids.push_back(submit(job, after));
      print("job {}: {}\n", ids.back(), job.name);
    }
  }
}

Command add(Command sweep, const std::string& name, const std::string& what,
            const std::shared_ptr<SweepArguments>& arguments,
            void (*action)(const SweepArguments&)) {
  const Command command = sweep.add_command(name, what);
  command.run([arguments, action] { action(*arguments); });
  return command;
}

void add_sweep_file(Command command, SweepArguments& arguments) {
  command.add_option("overrides", arguments.overrides,
                     "key=value pairs of the sweep file, e.g. sweep.seeds=3");
  command.add_option("--dir", arguments.dir, "Folder of the sweep (default: sweeps/<name>)");
}

void add_folder(Command command, SweepArguments& arguments) {
  command.add_option("sweep", arguments.sweep, "Folder of the sweep")
      .required()
      .existing_sweep("sweep folder");
}

void add_slurm_options(Command command, SweepArguments& arguments) {
  SlurmOptions& slurm = arguments.slurm;
  command.add_flag("--dry-run", arguments.dry_run, "Print the commands, and submit nothing");
  constexpr std::int64_t kMost = 1 << 20;
  command.add_option("--nodes", slurm.nodes, "Nodes of a run").in_range(1, kMost).show_default();
  command.add_option("--tasks-per-node", slurm.tasks_per_node, "Ranks of a run on a node")
      .in_range(1, kMost)
      .show_default();
  command.add_option("--cpus-per-task", slurm.cpus_per_task, "Cores of a rank").in_range(1, kMost);
  command.add_option("--gpus-per-node", slurm.gpus_per_node, "GPUs of a run on a node")
      .in_range(1, kMost);
  command.add_option("--time", slurm.time, "Time limit of a task, e.g. 08:00:00");
  command.add_option("--partition", slurm.partition, "Partition");
  command.add_option("--sbatch", slurm.options, "More options of sbatch, each as a word of its own")
      .split_at(' ');
  command
      .add_option("--parallel", slurm.parallel,
                  "Most runs of an array at a time (default: no limit)")
      .in_range(1, kMost);
  command
      .add_option("--largest-array", slurm.largest_array,
                  "Tasks of an array; more runs go into several arrays")
      .in_range(1, kMost)
      .show_default();
  command.add_option("--split", slurm.split, "What the ensemble ranks: train, valid or test")
      .one_of({"train", "valid", "test"})
      .show_default();
  command.add_option("--csv", slurm.csv, "Submission that the ensemble writes");
  command.add_option("--min-members", slurm.min_members, "Members that the ensemble needs")
      .in_range(1, kMost);
}

}  // namespace

void add_sweep_command(Command app) {
  const Command sweep =
      app.add_command("sweep", "Train seeds x folds x variants of experiments as one list");
  sweep.require_command();
  sweep.footer(
      "Runs that finished are never trained again, and runs that were stopped or killed go on "
      "where they were:\nany `sweep run` may be repeated, and several may work on one folder.\n\n"
      "Example:\n  tpudist sweep expand experiments/sweeps/folds.yaml\n"
      "  mpirun -np 8 tpudist sweep run sweeps/folds --groups 2\n"
      "  tpudist sweep collect sweeps/folds");
  auto arguments = std::make_shared<SweepArguments>();

  Command command = add(sweep, "expand", "Write the list of runs, and print it", arguments, expand);
  command.footer("Example:\n  tpudist sweep expand experiments/sweeps/folds.yaml sweep.seeds=2");
  command.add_option("file", arguments->sweep, "Sweep file (YAML)")
      .required()
      .existing_experiment("sweep file");
  add_sweep_file(command, *arguments);

  command = add(sweep, "run", "Train the runs that have not ended", arguments, run);
  command.footer(
      "Example:\n  mpirun -np 8 tpudist sweep run experiments/sweeps/folds.yaml --groups 2\n"
      "  tpudist sweep run sweeps/folds --index 3");
  command.add_option("sweep", arguments->sweep, "Sweep file, or folder of the sweep")
      .required()
      .existing_sweep("sweep file or folder");
  add_sweep_file(command, *arguments);
  const Option groups =
      command
          .add_option("--groups", arguments->groups,
                      "Sizes of the groups of ranks that train runs side by side, e.g. 2,2,1; the "
                      "last one is repeated (default: all ranks train each run)")
          .split_at(',')
          .in_range(1, 1 << 16);
  command.add_flag(
      "--go-on", arguments->go_on,
      "Begin a later stage although runs of the one before failed: their variants come last");
  command.add_option("--index", arguments->index, "Train this run only: for tasks of an array job")
      .in_range(0, 1 << 30)
      .excludes(groups);

  command =
      add(sweep, "submit", "Submit the runs to Slurm as arrays, and their ensemble after them",
          arguments, submit);
  command.footer(
      "Example:\n  tpudist sweep submit sweeps/folds --tasks-per-node 8 --time 02:00:00 --dry-run\n"
      "  tpudist sweep submit sweeps/folds --parallel 4 --csv submission.csv");
  command.add_option("sweep", arguments->sweep, "Sweep file, or folder of the sweep")
      .required()
      .existing_sweep("sweep file or folder");
  add_sweep_file(command, *arguments);
  command.add_flag("--go-on", arguments->slurm.go_on,
                   "Begin later stages although runs of the one before failed");
  add_slurm_options(command, *arguments);

  command =
      add(sweep, "status", "Print how many runs wait, run, failed and finished", arguments, status);
  command.footer("Example:\n  tpudist sweep status sweeps/folds");
  add_folder(command, *arguments);

  command = add(sweep, "retry", "Let `sweep run` train failed runs again", arguments, retry);
  command.footer("Example:\n  tpudist sweep retry sweeps/folds --runs 3,5");
  add_folder(command, *arguments);
  command.add_option("--runs", arguments->runs, "Only the failed ones among these indices")
      .split_at(',');
  command.add_flag("--take-back", arguments->take_back,
                   "Also take back later stages that were chosen without these runs");

  command =
      add(sweep, "collect", "Print what the runs reached, and what was chosen", arguments, collect);
  command.footer("Example:\n  tpudist sweep collect sweeps/folds --csv folds.csv");
  add_folder(command, *arguments);
  command.add_option("--csv", arguments->csv, "Write a line for each member of each run");
  command.add_option("--json", arguments->json, "Write summaries and runs");
}

}  // namespace tpudist
