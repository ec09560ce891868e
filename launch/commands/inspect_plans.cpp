#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config/yaml_scalar.hpp"
#include "core/numbers.hpp"
#include "core/text_table.hpp"
#include "data/shards/manifest.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/job.hpp"
#include "launch/program/output.hpp"
#include "train/units/plan_statistics.hpp"

namespace tpudist {
namespace {

constexpr double kGiga = 1e9;

std::string_view auto_plan(const GraphPlanStatistics& graph) {
  return graph.refined_pays ? "refined" : "dense";
}

std::vector<TableCell> cells(const GraphPlanStatistics& graph) {
  const std::string whole =
      graph.nodes == graph.whole_nodes ? "" : fmt::format(" of {}", graph.whole_nodes);
  std::vector<TableCell> row{graph.name,
                             fmt::format("{}{}", graph.nodes, whole),
                             graph.config_nodes,
                             graph.distinct_configs,
                             graph.configs,
                             TableCell(graph.dense_flop / kGiga, "{:.3f}"),
                             TableCell(graph.refined_flop / kGiga, "{:.3f}"),
                             TableCell(graph.saving(), "{:.2f}"),
                             TableCell(1e3 * graph.plan_seconds, "{:.1f}"),
                             auto_plan(graph),
                             graph.dense_rows};
  row.insert(row.end(), graph.rows.begin(), graph.rows.end());
  row.emplace_back(graph.needed_rows);
  return row;
}

void print_table(const Experiment& experiment, const std::vector<GraphPlanStatistics>& graphs) {
  TextTable table({"graph"});
  for (const char* name : {"nodes", "config", "distinct", "K", "dense GF", "refined", "saving",
                           "ms", "auto", "dense rows"})
    table.columns.push_back(right(name));
  for (std::size_t layer = 0; layer < graphs.front().rows.size(); ++layer)
    table.columns.push_back(right(fmt::format("{}{}", layer == 0 ? "rows " : "", layer)));
  table.columns.push_back(right("needed"));
  for (const GraphPlanStatistics& graph : graphs) table.rows.push_back(cells(graph));
  const GraphReduction& reduction = experiment.data.reduction;
  print("{} train, plans of a slate of {} configurations{}\n{}", experiment.data.collection.name,
        experiment.batch.configs,
        reduction != GraphReduction() ? fmt::format("; graphs reduced to {}", to_text(reduction))
                                      : "",
        table.to_text());
}

void print_summary(const std::vector<GraphPlanStatistics>& graphs) {
  const PlanSummary summary = summarise(graphs);
  print("{}: saving {:.2f} (median), {:.2f} (total); plan: auto refines {}, saves {:.2f}\n",
        counted(std::ssize(graphs), "graph"), summary.median_saving, summary.total_saving,
        format_count(summary.refined), summary.auto_saving);
}

nlohmann::ordered_json to_json(const GraphPlanStatistics& graph) {
  return {{"name", graph.name},
          {"nodes", graph.nodes},
          {"whole_nodes", graph.whole_nodes},
          {"config_nodes", graph.config_nodes},
          {"distinct_configs", graph.distinct_configs},
          {"configs", graph.configs},
          {"dense_rows", graph.dense_rows},
          {"rows", graph.rows},
          {"needed_rows", graph.needed_rows},
          {"dense_gflop", graph.dense_flop / kGiga},
          {"refined_gflop", graph.refined_flop / kGiga},
          {"saving", graph.saving()},
          {"plan_seconds", graph.plan_seconds},
          {"auto", auto_plan(graph)}};
}

nlohmann::ordered_json to_json(const Experiment& experiment,
                               const std::vector<GraphPlanStatistics>& graphs) {
  const PlanSummary summary = summarise(graphs);
  nlohmann::ordered_json json = {{"experiment", experiment.name},
                                 {"collection", experiment.data.collection.name},
                                 {"split", "train"},
                                 {"reduce", to_text(experiment.data.reduction)},
                                 {"configs", experiment.batch.configs},
                                 {"graphs", nlohmann::ordered_json::array()},
                                 {"median_saving", summary.median_saving},
                                 {"total_saving", summary.total_saving},
                                 {"auto_saving", summary.auto_saving},
                                 {"auto_refined", summary.refined}};
  for (const GraphPlanStatistics& graph : graphs) json["graphs"].push_back(to_json(graph));
  return json;
}

}  // namespace

void inspect_plans(const InspectPlanArguments& arguments) {
  std::vector<std::string> overrides = arguments.overrides;
  if (!arguments.shards.empty())
    overrides.push_back("data.shards=" + format_yaml_text(arguments.shards.string()));
  ConfigDocument document = ConfigDocument::load(arguments.config, overrides);
  Experiment experiment = read_experiment(document);
  if (arguments.configs > 0) experiment.batch.configs = arguments.configs;
  const int threads = arguments.threads > 0 ? arguments.threads : experiment.dist.threads;
  run_job({"cpu", threads}, [&](JobContext& context) {
    if (context.world.rank() != 0) return;
    require_shards(experiment.data.shards, experiment.data.collection,
                   "give the folder of the shards, or data.shards=FOLDER");
    const auto graphs = plan_statistics(experiment, context.pool, context.progress);
    if (arguments.json) return print_json(to_json(experiment, graphs));
    print_table(experiment, graphs);
    print_summary(graphs);
  });
}

}  // namespace tpudist
