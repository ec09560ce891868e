#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/progress.hpp"
#include "core/thread_pool.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// The effect of refinement on one slate of one graph. Costs are floating-point operations of a step
// of one member (models/plans/plan_cost.hpp).
struct GraphPlanStatistics {
  std::string name;
  std::int64_t nodes = 0;
  std::int64_t whole_nodes = 0;   // of the graph before `data.reduce`
  std::int64_t config_nodes = 0;  // tile: all nodes
  std::int64_t distinct_configs = 0;
  std::int64_t configs = 0;     // K of the slate; fewer if the graph has fewer
  std::int64_t dense_rows = 0;  // of each layer: nodes x K
  // [depth + 1] rows of the refined plan before each layer and after the last.
  std::vector<std::int64_t> rows;
  std::int64_t needed_rows = 0;  // needed rows after the last layer: the backward pass starts there
  double dense_flop = 0, refined_flop = 0;
  double plan_seconds = 0;    // to build the refined plan of an already prepared graph
  bool refined_pays = false;  // whether `plan: auto` takes the refined plan
  double saving() const { return refined_flop > 0 ? dense_flop / refined_flop : 1; }
};

// The savings over all graphs.
struct PlanSummary {
  double median_saving = 0;  // median of the graphs' savings
  double total_saving = 0;   // all dense plans / all refined plans
  double auto_saving = 0;    // all dense plans / all plans chosen by `plan: auto`
  std::int64_t refined = 0;  // graphs whose plan `plan: auto` refines
};

// Plans the first slate, of `batch.configs` configurations, of every graph of the training data, in
// the order of the data. With batch.order: per_member the slate is member 0's. Plans graphs in
// parallel, with one slate in memory per thread. Throws DataError, ConfigError or IoError.
std::vector<GraphPlanStatistics> plan_statistics(const Experiment& experiment, ThreadPool& pool,
                                                 ProgressSink& progress);

// `graphs` must not be empty.
PlanSummary summarise(const std::vector<GraphPlanStatistics>& graphs);

}  // namespace tpudist
