#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/thread_pool.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/fold_table.hpp"
#include "data/loading/slate_order.hpp"
#include "dist/collectives/communicator.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/network/network.hpp"
#include "train/experiment/experiment.hpp"
#include "train/units/batch_plan.hpp"
#include "train/units/step_work.hpp"
#include "train/units/unit_builder.hpp"

namespace tpudist {

// Everything that an experiment needs before its first step: the data, the network, the order of
// slates, and the assignment of work. Training, its dry run, plan statistics and benchmarks all
// start from it. Borrows experiment and pool. Its parts refer to each other, so it cannot be moved.
// After construction it is only read, by any number of threads.
struct TrainingSetup {
  // `options`: usually `experiment.training_data()`. `device` -1 = CPU. `ranks`: number of ranks
  // that share the work. Collective over `world`, whose ranks estimate the costs of slates
  // together; usually the same ranks. One rank needs no costs. Throws ConfigError and DataError if
  // data and experiment do not match.
  TrainingSetup(const Experiment& experiment, const DatasetOptions& options, ThreadPool& pool,
                int device, int ranks, Communicator& world);
  TrainingSetup(const TrainingSetup&) = delete;
  TrainingSetup& operator=(const TrainingSetup&) = delete;

  // Prepares the work of one rank.
  StepBuilder steps_of(int rank) const;

  const Experiment& experiment;
  ThreadPool& pool;
  // How many steps are prepared at a time: on a GPU up to four, if there are threads for it and
  // train.prefetch allows it: a unit is planned by one thread. On a CPU one.
  const int steps_at_once;
  const Dataset data;
  const FoldTable folds;
  const Network network;
  const UnitBuilder units;
  const SlateOrder order;
  const BatchPlanner planner;
};

// Throws ConfigError on every rank unless all have cut their graphs alike (data.segments). Collective.
void require_same_segments(const Dataset& data, Communicator& world);

// Where graphs are cut (data.segments), the rows and segments of each: of SegmentTable. Else none.
std::vector<std::pair<std::int64_t, std::int64_t>> cut_graphs(const Experiment& experiment,
                                                              const Dataset& data);

// The slates of a unit that are computed at a time: all of them, or the first chunk of a single
// one.
std::vector<SlateRows> computed_together(const Experiment& experiment,
                                         std::vector<SlateRows> slates);

// The unit with the most nodes x configurations, among those of the first steps and a slate of the
// largest graph; of cut graphs those with the largest segments. A pure function of the setup.
std::vector<SlateRows> largest_unit(const TrainingSetup& setup);

// A draw for that unit: of cut graphs the largest segments.
GraphDraw largest_draw(const Experiment& experiment);

// Measures the feature statistics of every member's training data, those that the transforms of the
// network's encoder take: the nodes of all its graphs, and the states of at most kStatisticsRows
// configurations of each graph, evenly spread over its rows; for `min_max` those of all. The same
// on every rank. Throws DataError or IoError when reading fails.
std::vector<FeatureStatistics> member_statistics(const TrainingSetup& setup);

inline constexpr std::int64_t kStatisticsRows = 256;

}  // namespace tpudist
