#include "launch/sweep/slurm_submission.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/process.hpp"
#include "core/text.hpp"

namespace tpudist {

// The files slurm/sweep.sbatch and slurm/ensemble.sbatch, embedded by slurm_scripts.cpp.in.
extern const std::string_view kSweepScript, kEnsembleScript;

namespace {

namespace fs = std::filesystem;

// "0-4,7" of rising numbers.
std::string ranges(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ",";
    text += fmt::format("{}", numbers[begin]);
    if (end - begin > 1) text += fmt::format("-{}", numbers[end - 1]);
    begin = end;
  }
  return text;
}

// Indices of a stage's runs that remain to be trained; all possible ones if the runs are unknown.
std::vector<int> indices_left(const SweepFolder& folder, int stage_number) {
  const Stage& stage = folder.record().stages[stage_number];
  std::vector<int> left;
  if (const auto runs = folder.stage_runs(stage_number)) {
    for (const SweepRun& run : *runs)
      if (folder.state(run) != RunState::finished) left.push_back(run.index);
  } else {
    for (int i = 0; i < stage.count; ++i) left.push_back(stage.first + i);
  }
  return left;
}

void add(const std::vector<std::string>& more, std::vector<std::string>& arguments) {
  arguments.insert(arguments.end(), more.begin(), more.end());
}

std::vector<std::string> common_arguments(const SlurmOptions& options) {
  std::vector<std::string> arguments{"--parsable", fmt::format("--nodes={}", options.nodes),
                                     fmt::format("--ntasks-per-node={}", options.tasks_per_node)};
  if (options.cpus_per_task > 0)
    arguments.push_back(fmt::format("--cpus-per-task={}", options.cpus_per_task));
  if (options.gpus_per_node > 0)
    arguments.push_back(fmt::format("--gpus-per-node={}", options.gpus_per_node));
  if (!options.partition.empty()) arguments.push_back("--partition=" + options.partition);
  if (!options.time.empty()) arguments.push_back("--time=" + options.time);
  return arguments;
}

// The path, if Slurm's options take it literally.
std::string plain(const std::string& path) {
  if (path.find_first_of("%,\\\n") == std::string::npos) return path;
  throw ConfigError(shell_quoted(path) +
                    ": Slurm takes no path with per cent signs, commas, backslashes or line "
                    "breaks; rename the folders that have them, or expand the sweep into another "
                    "one (--dir)");
}

// The output of a command, and its exit code from pclose().
std::pair<std::string, int> answer_of(const std::string& command) {
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (!pipe) throw IoError("cannot start a shell for " + command.substr(0, command.find(' ')));
  std::string answer;
  std::array<char, 256> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe)) answer += buffer.data();
  return {std::string(trim(answer)), ::pclose(pipe)};
}

}  // namespace

std::vector<SlurmJob> slurm_jobs(const SweepFolder& folder, const SlurmOptions& options,
                                 const std::string& program) {
  const fs::path path = fs::absolute(folder.path()).lexically_normal();
  const std::string name = "tpudist-" + folder.record().name;
  const std::string environment = "--export=ALL,TPUDIST=" + plain(program);
  const std::string output = fmt::format("--output={}/slurm/", plain(path.string()));
  std::vector<SlurmJob> jobs;
  std::vector<int> before;  // the jobs of the stage before
  const auto& stages = folder.record().stages;
  for (int stage = 0; stage < static_cast<int>(stages.size()); ++stage) {
    const std::vector<int> left = indices_left(folder, stage);
    std::vector<int> mine;
    for (std::size_t begin = 0; begin < left.size();) {
      const int first = left[begin];
      std::vector<int> tasks;
      for (; begin < left.size() && left[begin] - first < options.largest_array; ++begin)
        tasks.push_back(left[begin] - first);
      SlurmJob job{
          fmt::format("{}, runs {} to {}", stages[stage].name, first, first + tasks.back()),
          common_arguments(options), before};
      add({"--job-name=" + name, output + "%A_%a.out",
           fmt::format("--array={}{}", ranges(tasks),
                       options.parallel > 0 ? fmt::format("%{}", options.parallel) : std::string()),
           fmt::format("{},TPUDIST_SWEEP_FIRST={}", environment, first)},
          job.arguments);
      add(options.options, job.arguments);  // sbatch takes the last of equal options
      add({(path / "slurm" / "sweep.sbatch").string(), path.string()}, job.arguments);
      if (options.go_on) job.arguments.push_back("--go-on");
      mine.push_back(static_cast<int>(jobs.size()));
      jobs.push_back(std::move(job));
    }
    if (!mine.empty()) before = mine;
  }
  SlurmJob ensemble{"ensemble", common_arguments(options), {}};
  for (int i = 0; i < static_cast<int>(jobs.size()); ++i) ensemble.after.push_back(i);
  add({"--job-name=" + name + "-ensemble", output + "%j.out", environment}, ensemble.arguments);
  fs::path csv = options.csv;
  const SweepRecord& record = folder.record();
  std::set<std::string> collections;
  for (const SweepRun& run : record.runs) collections.insert(run.collection);
  if (record.choice == ChoiceScore::none && record.labels.size() > collections.size()) {
    ensemble.name = "ensemble of each variant";
    ensemble.arguments.back() += fmt::format(",TPUDIST_VARIANTS={}", record.labels.size());
    csv.replace_filename(csv.stem().string() + "-{}" + csv.extension().string());
  }
  add(options.options, ensemble.arguments);
  add({(path / "slurm" / "ensemble.sbatch").string(), path.string(), "--split", options.split},
      ensemble.arguments);
  if (!options.csv.empty()) ensemble.arguments.push_back("--csv=" + csv.string());
  if (options.min_members > 0)
    add({"--min-members", fmt::format("{}", options.min_members)}, ensemble.arguments);
  jobs.push_back(std::move(ensemble));
  return jobs;
}

void write_slurm_scripts(const SweepFolder& folder) {
  const fs::path slurm = folder.path() / "slurm";
  make_folder(slurm);
  write_file_atomically(slurm / "sweep.sbatch", kSweepScript);
  write_file_atomically(slurm / "ensemble.sbatch", kEnsembleScript);
}

std::string command_line(const SlurmJob& job, const std::vector<std::string>& after_ids) {
  std::vector<std::string> words{"sbatch"};
  if (!after_ids.empty()) words.push_back("--dependency=afterany:" + join(after_ids, ":"));
  for (const std::string& argument : job.arguments) words.push_back(shell_word(argument));
  return join(words, " ");
}

std::string submit(const SlurmJob& job, const std::vector<std::string>& after_ids) {
  const auto [answer, status] = answer_of(command_line(job, after_ids));
  if (status != 0)
    throw Error(ErrorKind::failed, fmt::format("sbatch failed ({}): {}", job.name, answer));
  // "1234", or "1234;cluster"; warnings may come before it.
  const std::vector<std::string> lines = split(answer, '\n');
  const std::string id = lines.back().substr(0, lines.back().find(';'));
  if (id.empty() || id.find_first_not_of("0123456789") != std::string::npos) {
    throw Error(ErrorKind::failed,
                fmt::format("sbatch answered \"{}\", which is no job id", answer));
  }
  return id;
}

std::string queue_text(const SweepFolder& folder) {
  const std::string slurm = (fs::absolute(folder.path()).lexically_normal() / "slurm").string();
  std::size_t left = 0;
  for (int stage = 0; stage < static_cast<int>(folder.record().stages.size()); ++stage)
    left += indices_left(folder, stage).size();
  if (left == 0 || !fs::exists(slurm)) return {};
  const auto [jobs, status] = answer_of("squeue --noheader --format='Slurm job %i %T (%r) %o'");
  if (status != 0) return "\nSlurm's jobs are not known: `squeue` failed: " + jobs + "\n";
  std::string own;
  for (const std::string& job : split(jobs, '\n'))
    if (job.find(slurm + "/") != std::string::npos) own += "\n" + job;
  if (!own.empty()) return own + "\n";
  return fmt::format(
      "\n`squeue` lists no job of this sweep, but runs are left to train (at most {}): see {}; "
      "`tpudist sweep submit {}` submits them\n",
      left, slurm, shell_word(folder.path().string()));
}

}  // namespace tpudist
