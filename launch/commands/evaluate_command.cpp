#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/json.hpp"
#include "core/means.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/scoring_options.hpp"
#include "launch/program/output.hpp"
#include "results/scores/system_scores.hpp"
#include "train/scoring/collection_scores.hpp"

namespace tpudist {
namespace {

struct EvaluateArguments : ScoringArguments {
  std::filesystem::path run, json, trace;
  std::string split = "valid";
  JudgementArguments judgement;
  int draws = 1;
};

// The scores of members and of their combination over all draws of nodes. A score that a draw lacks
// is left out.
struct DrawScores {
  std::string name;
  std::vector<double> scores;  // [draws]

  double mean() const { return tpudist::mean(scores); }
  double deviation() const {  // at least two scores
    return std::sqrt(squares_around(scores, mean()) / static_cast<double>(scores.size() - 1));
  }
};

std::vector<DrawScores> scores_by_draw(const CollectionResult& result) {
  std::vector<const Evaluation*> draws{&*result.evaluation};
  for (const Evaluation& evaluation : result.more_draws) draws.push_back(&evaluation);
  std::vector<DrawScores> all{{"ensemble", {}}};
  for (const MemberName& name : result.evaluation->names) all.push_back({to_text(name), {}});
  for (const Evaluation* evaluation : draws) {
    all.front().scores.push_back(evaluation->ensemble_mean());
    const std::vector<double> members = evaluation->member_means();
    for (std::size_t m = 0; m < members.size(); ++m) all[m + 1].scores.push_back(members[m]);
  }
  std::erase_if(all, [](const DrawScores& of) { return !all_finite(of.scores); });
  return all;
}

std::string draws_text(const std::vector<DrawScores>& draws, int count) {
  std::string text = fmt::format("over {} draws of nodes\n", count);
  for (const DrawScores& of : draws)
    text += fmt::format("  {:<12} mean {:.4f}  SD {:.4f}  {:.4f} to {:.4f}\n", of.name, of.mean(),
                        of.deviation(), std::ranges::min(of.scores), std::ranges::max(of.scores));
  return text;
}

nlohmann::json draws_json(const std::vector<DrawScores>& draws) {
  nlohmann::json json = nlohmann::json::array();
  for (const DrawScores& of : draws) {
    json.push_back(
        {{"name", of.name}, {"mean", of.mean()}, {"sd", of.deviation()}, {"scores", of.scores}});
  }
  return json;
}

void run(const EvaluateArguments& arguments) {
  if (arguments.split == "test")
    refuse_value("--split", "The test split has no run times: `tpudist predict` ranks it");
  const TrainedRun trained = arguments.open(arguments.run);
  if (arguments.draws > 1 && trained.experiment.data.reduction.scored().max_nodes == 0)
    throw ConfigError(fmt::format(
        "--draws {}: the run draws no nodes of scored graphs (data.reduce.max_nodes: 0, "
        "or drawn: trained), so all draws would be equal; leave it out",
        arguments.draws));
  const JobOptions options =
      arguments.job_options({{"the command", "evaluate"},
                             {"--split", arguments.split},
                             {"--trace", arguments.trace.string()},
                             {"--draws", std::to_string(arguments.draws)},
                             {"--combine and --keep-all", arguments.judgement.to_text()}},
                            {&trained, 1});
  run_job(options, [&](JobContext& context) {
    check_outputs({arguments.json, arguments.trace}, context.world);
    const TracedJob traced(context, arguments.trace);
    const auto results = score_runs({trained},
                                    {.split = arguments.split,
                                     .shards = arguments.shards,
                                     .judgement = arguments.judgement.options(),
                                     .draws = arguments.draws},
                                    context);
    traced.write();
    if (context.world.rank() != 0) return;
    const CollectionResult& result = results.front();
    arguments.warn_of_chosen_scores(arguments.split);
    arguments.warn_of_other_graphs(trained);
    print("{}, {}, {}\n", arguments.run, opened_at(trained), result.collection);
    print("{}\n{}", evaluation_table(*result.evaluation), judgement_notes(result.judgement));
    if (const std::string final = final_score_text(results); !final.empty()) print("\n{}", final);
    std::vector<DrawScores> draws;
    if (arguments.draws > 1) {
      draws = scores_by_draw(result);
      print("{}", draws_text(draws, arguments.draws));
    } else if (trained.experiment.data.reduction.scored().max_nodes > 0) {
      print("{}; --draws 10 shows how other draws move them\n", kDrawnNodes);
    }
    if (arguments.json.empty()) return;
    nlohmann::json json = evaluation_json(*result.evaluation);
    json["collection"] = result.collection;
    json["step"] = trained.step;
    json["averaged"] = trained.averaged;
    json["judgement"] = judgement_json(result.judgement);
    if (arguments.draws > 1) json["draws"] = draws_json(draws);
    write_file_atomically(arguments.json, json_text(json, 2) + "\n");
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
  command.add_option("--split", arguments->split, "train or valid; `tpudist predict` ranks test")
      .one_of({"train", "valid", "test"})
      .show_default();
  add_judgement_options(command, arguments->judgement);
  add_scoring_options(command, *arguments);
  command
      .add_option("--draws", arguments->draws,
                  "Score so often, each time with other nodes, a run with data.reduce.max_nodes")
      .in_range(1, 1000)
      .show_default();
  command.add_option("--json", arguments->json, "Write the scores to this file");
  add_trace_option(command, arguments->trace);
  command.run([arguments] { run(*arguments); });
}

}  // namespace tpudist
