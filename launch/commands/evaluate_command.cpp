#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "inference/collection_scores.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/scoring_options.hpp"
#include "launch/program/job.hpp"
#include "launch/program/output.hpp"

namespace tpudist {
namespace {

struct EvaluateArguments : ScoringArguments {
  std::filesystem::path run, json, trace;
  std::string split = "valid";
  JudgementArguments judgement;
};

void run(const EvaluateArguments& arguments) {
  const TrainedRun trained = arguments.open(arguments.run);
  const DistConfig& dist = trained.experiment.dist;
  JobOptions options{arguments.device, arguments.threads, dist.mixed_cpus, dist.timeout};
  options.agreed = {{"the command", "evaluate"},
                    {"--split", arguments.split},
                    {"--trace", arguments.trace.string()},
                    {"--combine, --select and --keep-all", arguments.judgement.to_text()}};
  std::ranges::move(values_to_agree(trained), std::back_inserter(options.agreed));
  run_job(options, [&](JobContext& context) {
    check_outputs({arguments.json, arguments.trace}, context.world);
    const TracedJob traced(context, arguments.trace);
    const JudgementOptions judgement = arguments.judgement.options();
    const auto results = score_runs({trained},
                                    {arguments.split, arguments.shards, false,
                                     judgement.combination, judgement.keep_all, judgement.greedy},
                                    context);
    traced.write();
    if (context.world.rank() != 0) return;
    const CollectionResult& result = results.front();
    if (!result.evaluation)
      throw ConfigError("the test split has no run times; use `tpudist predict` to rank it");
    arguments.warn_of_chosen_scores(arguments.split);
    print("{}, {}, {}\n", arguments.run.string(), opened_at(trained), result.collection);
    print("{}\n{}", evaluation_table(*result.evaluation), judgement_notes(result.judgement));
    if (arguments.json.empty()) return;
    nlohmann::json json = evaluation_json(*result.evaluation);
    json["collection"] = result.collection;
    json["step"] = trained.step;
    json["averaged"] = trained.averaged;
    json["judgement"] = judgement_json(result.judgement);
    write_file_atomically(arguments.json, json.dump(2) + "\n");
  });
}

}  // namespace

void add_evaluate_command(Command app) {
  auto arguments = std::make_shared<EvaluateArguments>();
  const Command command =
      app.add_command("evaluate", "Score a run's members and their combination on a split");
  command.footer(
      "Takes all rows of the split; the work is spread over ranks.\n\n"
      "Example:\n  mpirun -np 2 tpudist evaluate runs/nlp-1 --split valid --json scores.json");
  command.add_option("run", arguments->run, "Folder of the run").required().existing_folder();
  command.add_option("--split", arguments->split, "train or valid")
      .one_of({"train", "valid"})
      .show_default();
  add_judgement_options(command, arguments->judgement);
  add_scoring_options(command, *arguments);
  command.add_option("--json", arguments->json, "Write the scores to this file");
  add_trace_option(command, arguments->trace);
  command.run([arguments] { run(*arguments); });
}

}  // namespace tpudist
