#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/file_system.hpp"
#include "core/log.hpp"
#include "launch/commands.hpp"
#include "launch/job.hpp"
#include "launch/output.hpp"
#include "launch/scoring_options.hpp"
#include "sweep/finished_runs.hpp"
#include "train/scores/final_score.hpp"
#include "train/scoring/inference.hpp"

namespace tpudist {
namespace {

struct Arguments : ScoringArguments {
  std::vector<std::filesystem::path> runs;
  std::filesystem::path csv, json;
  std::string split = "test";
  CombinationArguments combine;
};

// A list with the scores of each collection.
void write_scores(const std::filesystem::path& path, const std::vector<CollectionResult>& results) {
  nlohmann::json list = nlohmann::json::array();
  for (const CollectionResult& result : results) {
    if (!result.evaluation) continue;
    list.push_back(evaluation_json(*result.evaluation));
    list.back()["collection"] = result.collection;
  }
  write_file_atomically(path, list.dump(2) + "\n");
}

// Where several collections were scored.
void print_final_score(const std::vector<CollectionResult>& results) {
  std::vector<CollectionScore> scores;
  for (const CollectionResult& result : results) {
    if (result.evaluation)
      scores.push_back({result.collection, result.evaluation->ensemble_mean()});
  }
  if (scores.size() > 1) print("{}", final_score_text(scores));
}

JobOptions job_options(const Arguments& arguments, const std::vector<TrainedRun>& runs) {
  JobOptions options{arguments.device, arguments.threads, runs.front().experiment.dist.mixed_cpus};
  options.agreed = {{"the command", "predict or ensemble"},
                    {"--split", arguments.split},
                    {"--csv", arguments.csv.string()},
                    {"--json", arguments.json.string()},
                    {"--combine", arguments.combine.rule},
                    {"--temperature", std::to_string(arguments.combine.temperature)},
                    {"the number of runs", std::to_string(runs.size())}};
  for (const TrainedRun& run : runs) {
    std::ranges::move(agreed_values(run), std::back_inserter(options.agreed));
  }
  return options;
}

// With the runs of a sweep in the place of its folder.
std::vector<std::filesystem::path> run_folders(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::filesystem::path> folders;
  for (const auto& path : paths) {
    if (holds_sweep(path)) {
      std::ranges::move(finished_runs(path), std::back_inserter(folders));
    } else {
      folders.push_back(path);
    }
  }
  return folders;
}

// Ranks a split by all members of all runs together and writes the submission.
void run(const Arguments& arguments) {
  const Combination combination{combination_rule(arguments.combine.rule),
                                arguments.combine.temperature};
  std::vector<TrainedRun> runs;
  for (const auto& path : run_folders(arguments.runs)) runs.push_back(arguments.open(path));
  run_job(job_options(arguments, runs), [&](JobContext& context) {
    check_outputs({arguments.csv, arguments.json}, context.world);
    const auto results = score_runs(
        runs, {arguments.split, arguments.shards, !arguments.csv.empty(), combination}, context);
    if (context.world.rank() != 0) return;
    arguments.warn_of_chosen_scores(arguments.split);
    for (const TrainedRun& run : runs) spdlog::info("{}, {}", run.path.string(), opened_at(run));
    for (const CollectionResult& result : results) {
      spdlog::info("{}: {} graphs ranked", result.collection, result.graphs.size());
      if (result.evaluation) print("{}\n", evaluation_table(*result.evaluation));
    }
    print_final_score(results);
    if (!arguments.json.empty()) write_scores(arguments.json, results);
    if (arguments.csv.empty()) return;
    const Submission submission = make_submission(results);
    submission.write(arguments.csv);
    spdlog::info("wrote {}: {} rows", arguments.csv.string(), submission.rows().size());
  });
}

void add_options(CLI::App& command, Arguments& arguments) {
  add_combination_options(command, arguments.combine);
  add_scoring_options(command, arguments);
  command.add_option("--split", arguments.split, "train, valid or test")
      ->check(CLI::IsMember({"train", "valid", "test"}))
      ->capture_default_str();
}

}  // namespace

void add_predict_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("predict", "Rank the graphs of a split with a run's ensemble");
  command->footer(
      "Writes a submission: `ID,TopConfigs`, fastest first (tile: the 5 best, layout: all).\n\n"
      "Example:\n  tpudist predict runs/nlp-1 --split test --csv submission.csv");
  command->add_option("run", arguments->runs, "Folder of the run")
      ->required()
      ->expected(1)
      ->check(CLI::ExistingDirectory);
  command->add_option("--csv", arguments->csv, "Submission to write")->required();
  add_options(*command, *arguments);
  command->callback([arguments] { run(*arguments); });
}

void add_ensemble_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "ensemble", "Average the members of several runs, score them and rank a split");
  command->footer(
      "Runs of one collection are averaged member by member; runs of several collections make one "
      "submission.\n"
      "With a split that has run times (--split valid) it prints the scores of all members and of "
      "their mean.\n\n"
      "Example:\n  tpudist ensemble runs/nlp-1 runs/nlp-2 runs/xla-1 --csv submission.csv");
  command->add_option("runs", arguments->runs, "Folders of the runs, or of sweeps")
      ->required()
      ->check(CLI::ExistingDirectory);
  command->add_option("--csv", arguments->csv, "Submission to write");
  command->add_option("--json", arguments->json, "Write the scores to this file");
  add_options(*command, *arguments);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace tpudist
