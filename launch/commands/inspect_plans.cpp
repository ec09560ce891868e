#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config/yaml_scalar.hpp"
#include "core/numbers.hpp"
#include "data/shards/converted_collections.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/job.hpp"
#include "launch/program/output.hpp"
#include "train/units/plan_statistics.hpp"

namespace tpudist {
namespace {

constexpr double kGiga = 1e9;

using Row = std::vector<std::string>;

// Columns as wide as their widest cell: the first to the left, all others to the right.
std::string aligned(const std::vector<Row>& table) {
  std::vector<std::size_t> widths(table.front().size(), 0);
  for (const Row& row : table) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const Row& row : table) {
    text += fmt::format("{:<{}}", row[0], widths[0]);
    for (std::size_t c = 1; c < row.size(); ++c) text += fmt::format("  {:>{}}", row[c], widths[c]);
    text += '\n';
  }
  return text;
}

std::string_view auto_plan(const GraphPlanStatistics& graph) {
  return graph.refined_pays ? "refined" : "dense";
}

Row cells(const GraphPlanStatistics& graph) {
  Row row{graph.name,
          graph.nodes == graph.whole_nodes
              ? std::to_string(graph.nodes)
              : fmt::format("{} of {}", graph.nodes, graph.whole_nodes),
          std::to_string(graph.config_nodes),
          std::to_string(graph.distinct_configs),
          std::to_string(graph.configs),
          fmt::format("{:.3f}", graph.dense_flop / kGiga),
          fmt::format("{:.3f}", graph.refined_flop / kGiga),
          fmt::format("{:.2f}", graph.saving()),
          fmt::format("{:.1f}", 1e3 * graph.plan_seconds),
          std::string(auto_plan(graph)),
          std::to_string(graph.dense_rows)};
  for (const std::int64_t rows : graph.rows) row.push_back(std::to_string(rows));
  row.push_back(std::to_string(graph.needed_rows));
  return row;
}

void print_table(const Experiment& experiment, const std::vector<GraphPlanStatistics>& graphs) {
  Row header{"graph",   "nodes",  "config", "distinct", "K",         "dense GF",
             "refined", "saving", "ms",     "auto",     "dense rows"};
  for (std::size_t layer = 0; layer < graphs.front().rows.size(); ++layer)
    header.push_back(fmt::format("{}{}", layer == 0 ? "rows " : "", layer));
  header.push_back("needed");
  std::vector<Row> table{header};
  for (const GraphPlanStatistics& graph : graphs) table.push_back(cells(graph));
  const GraphReduction& reduction = experiment.data.reduction;
  print("{} train, plans of a slate of {} configurations{}\n{}", experiment.data.collection.name,
        experiment.batch.configs,
        reduction != GraphReduction() ? fmt::format("; graphs reduced to {}", to_text(reduction))
                                      : "",
        aligned(table));
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
