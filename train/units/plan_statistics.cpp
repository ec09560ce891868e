#include "train/units/plan_statistics.hpp"

#include <utility>

#include "core/means.hpp"
#include "dist/collectives/communicator.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

GraphPlanStatistics statistics_of(const TrainingSetup& setup, int g,
                                  const std::vector<std::int64_t>& rows) {
  const Dataset& data = setup.data;
  const std::vector<Slate> slates{data.slate(g, rows)};
  const PlanComparison plans = setup.units.compare(slates, graph_draw(setup.experiment, 0));
  const Graph& graph = data.graph(g);
  GraphPlanStatistics statistics;
  statistics.name = graph.name;
  statistics.nodes = data.seen_nodes(g);
  statistics.whole_nodes = data.entry(g).nodes;
  statistics.config_nodes = data.options().collection.is_tile()
                                ? graph.nodes
                                : static_cast<std::int64_t>(graph.config_nodes.size());
  statistics.distinct_configs = data.entry(g).distinct_configs;
  statistics.configs = static_cast<std::int64_t>(rows.size());
  statistics.dense_rows = plans.dense_rows;
  for (std::size_t layer = 0; layer <= plans.refined.layers.size(); ++layer)
    statistics.rows.push_back(plans.refined.rows(layer));
  statistics.needed_rows = plans.refined.needed_rows(plans.refined.layers.size());
  statistics.dense_flop = plans.dense_cost.step();
  statistics.refined_flop = plans.refined_cost.step();
  statistics.plan_seconds = plans.build_seconds;
  statistics.refined_pays = plans.refined_pays();
  return statistics;
}

}  // namespace

std::vector<GraphPlanStatistics> plan_statistics(const Experiment& experiment, ThreadPool& pool,
                                                 ProgressSink& progress) {
  DatasetOptions options = experiment.training_data();
  options.cache = CacheMode::stream;      // one slate of each graph is read
  Experiment without_folds = experiment;  // plans do not depend on them
  without_folds.ensemble.folds = 0;
  const auto alone = make_self_communicator();
  const TrainingSetup setup(without_folds, options, pool, -1, 1, *alone);
  const int first = drawn_by(experiment, 0);
  std::vector<GraphPlanStatistics> graphs(setup.data.size());
  progress.start("plans", setup.data.size(), "graphs");
  pool.parallel_for(setup.data.size(), [&](std::int64_t i) {
    const auto g = static_cast<int>(i);
    graphs[i] = statistics_of(setup, g, setup.order.rows({.graph = g}, first));
    progress.advance(1, setup.data.graph(g).name);
  });
  progress.finish();
  return graphs;
}

PlanSummary summarise(const std::vector<GraphPlanStatistics>& graphs) {
  PlanSummary summary;
  double dense = 0, refined = 0, chosen = 0;
  std::vector<double> savings;
  for (const GraphPlanStatistics& graph : graphs) {
    savings.push_back(graph.saving());
    dense += graph.dense_flop;
    refined += graph.refined_flop;
    chosen += graph.refined_pays ? graph.refined_flop : graph.dense_flop;
    summary.refined += graph.refined_pays;
  }
  summary.median_saving = median(std::move(savings));
  summary.total_saving = dense / refined;
  summary.auto_saving = dense / chosen;
  return summary;
}

}  // namespace tpudist
