#pragma once

#include <cstdint>
#include <optional>
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

// Throws ConfigError when a graph that `training` (Experiment::training_data) selects is also
// scored: if collections are joined, a graph may be in a training split of one collection and in a
// scored split of another. Throws what list_graphs throws. Reads only the manifests.
void refuse_scored_graphs(const DatasetOptions& training, const DataConfig& data);

// The folds of the graphs that `training` selects; none (`folds` 0) when members hold nothing out.
// Throws what split_into_folds throws.
FoldTable training_folds(const EnsembleConfig& ensemble, const DatasetOptions& training);

// The fold of each graph; empty without folds. Throws std::out_of_range if a graph has no fold.
std::vector<int> graph_folds(const FoldTable& folds, const Dataset& data);

// hash_of_folds of the training data, kept in checkpoints; nothing without folds. Includes graphs
// without rows after data.entropy_filter, because they are scored like other graphs.
std::optional<std::uint64_t> training_folds_hash(const FoldTable& folds, const Dataset& training);

// Folds without graphs of the training data. The members of such a fold train on all graphs.
std::vector<int> empty_folds(const FoldTable& folds, const Dataset& training);

// Everything that an experiment needs before its first step: the data, the network, the order of
// slates, and the assignment of work. Training, the dry run, plan statistics and benchmarks start
// from a setup. Borrows experiment and pool. The parts refer to each other, so a setup cannot be
// moved. After construction any number of threads may read a setup.
struct TrainingSetup {
  // `options`: usually `experiment.training_data()`. `device` -1 = CPU. `ranks`: number of ranks
  // that share the work; a single one without a GPU takes sizes for costs. Collective over `world`, usually
  // the same ranks, which estimate the costs of slates together. Throws ConfigError and DataError if
  // data and experiment do not match.
  TrainingSetup(const Experiment& experiment, const DatasetOptions& options, ThreadPool& pool,
                int device, int ranks, Communicator& world);
  TrainingSetup(const TrainingSetup&) = delete;
  TrainingSetup& operator=(const TrainingSetup&) = delete;

  // Prepares the work of one rank, as the planner or another gives it to ranks.
  StepBuilder steps_of(int rank) const { return steps_of(rank, planner); }
  StepBuilder steps_of(int rank, const BatchPlanner& assigned) const;

  const Experiment& experiment;
  ThreadPool& pool;
  // The number of steps prepared at a time. On a GPU as many as threads and train.prefetch allow,
  // because one thread plans a unit. On a CPU one.
  const int steps_at_once;
  // The device's memory for the leaves of a pass (StepBuilder); infinite where nobody knows it.
  const double most_pass_bytes;
  const Dataset data;
  const FoldTable folds;
  const Network network;
  const UnitBuilder units;
  const SlateOrder order;
  const BatchPlanner planner;
};

// Throws ConfigError on every rank unless all ranks cut graphs alike (data.segments). Collective.
void require_same_segments(const Dataset& data, Communicator& world);

// If graphs are cut (data.segments), rows and segments of each graph, for SegmentTable; else empty.
std::vector<std::pair<std::int64_t, std::int64_t>> cut_graphs(const Dataset& data);

// The slates of a unit that are computed at a time: all, or the first chunk of a single slate.
std::vector<SlateRows> computed_together(const Experiment& experiment,
                                         std::vector<SlateRows> slates);

// How many of the first steps are searched for the largest step and unit: at least one, also of a
// training of no steps.
int searched_steps(const Experiment& experiment);

struct LargestStep {
  std::int64_t step = 0;
  int rank = 0;             // the rank with most work
  std::int64_t leaves = 0;  // of the step with most leaves, of all ranks
};

// The step in which a rank has the most work (BatchPlan::rank_cost) among the searched steps. A pure
// function of setup and planner.
LargestStep largest_step(const TrainingSetup& setup, const BatchPlanner& planner);

// The unit with the highest cost (SlateCost), among the units of the searched steps and, if more
// follow, a slate of any graph; of cut graphs the one with the largest segments. A pure function of
// the setup.
std::vector<SlateRows> largest_unit(const TrainingSetup& setup);

// A draw for the largest unit: takes the largest segments of cut graphs.
GraphDraw largest_draw(const Experiment& experiment);

// [M] Measures the feature statistics that the transforms of the network's encoder need, over each
// member's training data: the nodes of all graphs, and the states of at most kStatisticsRows evenly
// spread configurations of each graph (for `min_max` all configurations). The same on every rank.
// Throws DataError or IoError when reading fails.
std::vector<FeatureStatistics> member_statistics(const TrainingSetup& setup);

inline constexpr std::int64_t kStatisticsRows = 256;

}  // namespace tpudist
