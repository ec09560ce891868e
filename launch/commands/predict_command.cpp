#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/process.hpp"
#include "core/text.hpp"
#include "data/schema/collection.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/scoring_options.hpp"
#include "launch/program/output.hpp"
#include "launch/sweep/sweep_folder.hpp"
#include "results/records/run_folder.hpp"
#include "results/scores/joined_predictions.hpp"
#include "results/scores/judgement.hpp"
#include "train/scoring/collection_scores.hpp"

namespace tpudist {
namespace {

std::shared_ptr<const PredictionsFile> open_predictions(const std::filesystem::path& input) {
  if (!std::filesystem::is_directory(input)) return std::make_shared<PredictionsFile>(input);
  const RunFolder run = RunFolder::open(input);
  if (!std::filesystem::exists(run.predictions())) {
    throw ConfigError(
        fmt::format("{}: the run has no {}; write it with `tpudist train {} --run-dir {} --resume "
                    "predictions.rows=all`",
                    input.string(), run.predictions().filename().string(),
                    shell_word(run.config().string()), shell_word(input.string())));
  }
  return std::make_shared<PredictionsFile>(run.predictions());
}

using FilesByCollection =
    std::map<std::string, std::vector<std::shared_ptr<const PredictionsFile>>>;

FilesByCollection open_all(const std::vector<std::filesystem::path>& inputs, int least) {
  FilesByCollection files;
  for (const auto& input : inputs) {
    try {
      auto file = open_predictions(input);
      files[file->header().collection].push_back(std::move(file));
    } catch (const Error& error) {
      if (least == 0) throw;
      spdlog::warn("left out: {}", error.what());
    }
  }
  if (files.empty()) throw ConfigError("none of the predictions can be used");
  std::vector<std::pair<std::string, Collection>> scored;
  for (const auto& [collection, own] : files)
    scored.emplace_back(own.front()->path().string(), Collection{collection});
  refuse_overlaps(scored);
  return files;
}

void require_members(const std::string& where, int left, int least) {
  if (left >= least) return;
  throw ConfigError(fmt::format("{}: {} left, but --min-members asks for {}", where,
                                counted(left, "member"), least));
}

// Judges and combines members from prediction files (a run folder stands for its predictions.h5).
// Prints a table for each split, and writes the tables as JSON if a file is given. Judges one
// collection after another. With `least_columns` > 0, warns of missing or damaged inputs and of
// incomplete columns, and leaves them out as long as so many columns remain (members, if nothing is
// held out).
// Throws ConfigError and DataError, which name the input.
void ensemble_predictions(const std::vector<std::filesystem::path>& inputs,
                          const JudgementOptions& options, const std::filesystem::path& json) {
  nlohmann::json list = nlohmann::json::array();
  for (auto& [collection, files] : open_all(inputs, options.least_columns)) {
    const JoinedPredictions joined(files);
    const Judgement judgement = judge(joined, options);
    for (const TableJudgement& table : judgement.tables)
      require_members(judgement.collection, static_cast<int>(table.columns.size()),
                      options.least_columns);
    print("{}\n", judgement_text(judgement));
    list.push_back(judgement_json(judgement));
  }
  if (!json.empty()) write_file_atomically(json, json_text(list, 2) + "\n");
}

struct PredictArguments : ScoringArguments {
  std::vector<std::filesystem::path> runs;
  std::filesystem::path csv, json, scores, trace;
  std::string split = "test";
  JudgementArguments judgement;
  bool out_of_fold = false;  // whether run folders stand for their predictions
};

// A list with the scores of each collection.
void write_scores(const std::filesystem::path& path, const std::vector<CollectionResult>& results) {
  nlohmann::json list = nlohmann::json::array();
  for (const CollectionResult& result : results) {
    if (!result.evaluation) continue;
    list.push_back(evaluation_json(*result.evaluation));
    list.back()["collection"] = result.collection;
    list.back()["judgement"] = judgement_json(result.judgement);
  }
  write_file_atomically(path, json_text(list, 2) + "\n");
}

std::vector<AgreedValue> values_to_agree(const PredictArguments& arguments) {
  return {{"the command", "predict or ensemble"},
          {"--split", arguments.split},
          {"--csv", arguments.csv.string()},
          {"--json", arguments.json.string()},
          {"--scores", arguments.scores.string()},
          {"--trace", arguments.trace.string()},
          {"--combine and --keep-all", arguments.judgement.to_text()}};
}

// Prints scores to standard output, or without scores the submission.
void print_result(const CollectionResult& result) {
  const std::string notes = judgement_notes(result.judgement);
  if (result.evaluation) return print("{}\n{}\n", evaluation_table(*result.evaluation), notes);
  for (const std::string& line : split(trim(notes), '\n')) spdlog::info("{}", line);
}

// Opens the runs. With --min-members, leaves out runs that cannot be opened.
std::vector<TrainedRun> open_runs(const PredictArguments& arguments) {
  std::vector<TrainedRun> runs;
  int members = 0;
  for (const auto& path : run_folders(arguments.runs)) {
    try {
      runs.push_back(arguments.open(path));
      members += static_cast<int>(std::ranges::count(runs.back().use, true));
    } catch (const Error& error) {
      if (arguments.judgement.least == 0) throw;
      spdlog::warn("left out: {}", error.what());
    }
  }
  require_members("the runs", members, arguments.judgement.least);
  return runs;
}

void require_one_collection(const std::vector<TrainedRun>& runs) {
  for (const TrainedRun& run : runs) {
    const std::string &first = runs.front().experiment.data.collection.name,
                      &other = run.experiment.data.collection.name;
    if (first != other) {
      throw ConfigError(
          fmt::format("--scores takes predictions of one collection, but the runs are of {} and {}",
                      first, other));
    }
  }
}

// Ranks a split by all members of all runs together and writes the submission.
void run(const PredictArguments& arguments) {
  const JudgementOptions judgement = arguments.judgement.options();
  const std::vector<TrainedRun> runs = open_runs(arguments);
  if (!arguments.scores.empty()) require_one_collection(runs);
  run_job(arguments.job_options(values_to_agree(arguments), runs), [&](JobContext& context) {
    check_outputs({arguments.csv, arguments.json, arguments.scores, arguments.trace},
                  context.world);
    const TracedJob traced(context, arguments.trace);
    const auto results = score_runs(runs,
                                    {.split = arguments.split,
                                     .shards = arguments.shards,
                                     .means = !arguments.csv.empty(),
                                     .judgement = judgement,
                                     .scores = arguments.scores},
                                    context);
    traced.write();
    if (context.world.rank() != 0) return;
    for (const CollectionResult& result : results) {
      const auto left = static_cast<int>(std::ranges::count(result.judgement.used, true));
      require_members(result.collection, left, arguments.judgement.least);
    }
    arguments.warn_of_chosen_scores(arguments.split);
    for (const TrainedRun& run : runs) spdlog::info("{}, {}", run.path.string(), opened_at(run));
    for (const CollectionResult& result : results) {
      spdlog::info("{}: {} ranked", result.collection, counted(std::ssize(result.graphs), "graph"));
      print_result(result);
    }
    print("{}", final_score_text(results));
    if (!arguments.json.empty()) write_scores(arguments.json, results);
    if (!arguments.scores.empty()) spdlog::info("wrote {}", arguments.scores.string());
    if (arguments.csv.empty()) return;
    const Submission submission = make_submission(results);
    submission.write(arguments.csv);
    spdlog::info("wrote {}: {}", arguments.csv.string(),
                 counted(std::ssize(submission.rows()), "row"));
  });
}

// Whether inputs are predictions: files, or run folders with --out-of-fold. Other folders are runs.
bool takes_predictions(const PredictArguments& arguments) {
  return arguments.out_of_fold ||
         std::ranges::any_of(arguments.runs, [](const std::filesystem::path& path) {
           return std::filesystem::is_regular_file(path);
         });
}

void run_ensemble(const PredictArguments& arguments) {
  if (!takes_predictions(arguments)) return run(arguments);
  if (!arguments.csv.empty() || !arguments.scores.empty()) {
    throw ConfigError(
        "--csv and --scores need runs that score a split; leave them out where "
        "predictions are combined");
  }
  JobOptions options;
  options.agreed = {{"the command", "ensemble of predictions"}};
  run_job(options, [&](JobContext& context) {
    check_outputs({arguments.json}, context.world);
    run_on_all_ranks(context.world, [&] {
      if (context.world.rank() != 0) return;
      ensemble_predictions(run_folders(arguments.runs), arguments.judgement.options(),
                           arguments.json);
    });
  });
}

void add_options(Command command, PredictArguments& arguments) {
  add_judgement_options(command, arguments.judgement);
  add_scoring_options(command, arguments);
  command.add_option("--split", arguments.split, "train, valid or test")
      .one_of({"train", "valid", "test"})
      .show_default();
  command.add_option("--scores", arguments.scores,
                     "Write the scores of all members as a file of predictions (HDF5)");
}

}  // namespace

void add_predict_command(Command app) {
  auto arguments = std::make_shared<PredictArguments>();
  const Command command =
      app.add_command("predict", "Rank the graphs of a split with a run's ensemble");
  command.footer(
      "Writes a submission: `ID,TopConfigs`, fastest first (tile: the 5 best, layout: all).\n\n"
      "Example:\n  tpudist predict runs/nlp-1 --split test --csv submission.csv");
  command
      .add_option("run", arguments->runs, "Folder of the run, or SWEEP:N for the runs of a variant")
      .required()
      .takes(1);
  command.add_option("--csv", arguments->csv, "Submission to write").required();
  add_options(command, *arguments);
  add_trace_option(command, arguments->trace);
  command.run([arguments] { run(*arguments); });
}

void add_ensemble_command(Command app) {
  auto arguments = std::make_shared<PredictArguments>();
  const Command command = app.add_command(
      "ensemble", "Combine the members of several runs, score them and rank a split");
  command.footer(
      "Runs of one collection are combined member by member; runs of several collections make one "
      "submission.\n"
      "With a split that has run times (--split valid) it prints the scores of all members and of "
      "their combination.\n"
      "Files of predictions, or run folders with --out-of-fold, are judged as they are, without "
      "scoring again:\n"
      "the training graphs out of fold, and the validation split.\n\n"
      "Example:\n  tpudist ensemble runs/nlp-1 runs/nlp-2 runs/xla-1 --csv submission.csv\n"
      "  tpudist ensemble --out-of-fold runs/nlp-1 runs/nlp-2");
  command
      .add_option("runs", arguments->runs,
                  "Folders of the runs, or of sweeps, or files of predictions")
      .required();
  command.add_flag("--out-of-fold", arguments->out_of_fold,
                   "Take the predictions.h5 of each run folder");
  command
      .add_option("--min-members", arguments->judgement.least,
                  "Leave out inputs that are missing, damaged or incomplete, as long as so many "
                  "members (out of fold: columns of a seed) are left")
      .in_range(1, 1 << 20);
  command.add_option("--csv", arguments->csv, "Submission to write");
  command.add_option("--json", arguments->json, "Write the scores to this file");
  add_options(command, *arguments);
  command.run([arguments] { run_ensemble(*arguments); });
}

}  // namespace tpudist
