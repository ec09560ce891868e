#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/thread_pool.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/slate_order.hpp"
#include "dist/collectives/assignment.hpp"
#include "dist/collectives/communicator.hpp"
#include "dist/collectives/gradient_reducer.hpp"
#include "train/experiment/experiment.hpp"
#include "train/units/unit_builder.hpp"

namespace tpudist {

// Estimated cost of one graph's slates for one member in a training step, from sample plans, in
// floating-point operations (UnitEstimate::step_work). Slates in one plan share rows, so each
// further slate costs less than the first.
struct SlateCost {
  double first = 1;    // one slate of `batch.configs` configurations
  double further = 1;  // each further slate of the graph in the same plan
  double of(int slates) const { return slates > 0 ? first + (slates - 1) * further : 0; }
};

inline constexpr int kCostSamples = 256;

// The costs of all graphs of the training data. Collective: the ranks of `world` share the sample
// plans, and all ranks get bit-identical costs, which determine the owners of units. Reads and
// plans the first slate of each graph (a few slates, if slates are merged). Of more than
// `most_samples` graphs, samples that many, evenly over the sizes; any other graph has the cost per
// node and configuration of the next smaller sample. Without samples a cost is nodes x
// configurations. Throws DataError or IoError.
std::vector<SlateCost> estimate_slate_costs(const Experiment& experiment, const Dataset& data,
                                            const UnitBuilder& units, const SlateOrder& order,
                                            ThreadPool& pool, Communicator& world,
                                            int most_samples = kCostSamples);

// One training step, the same on all ranks: its slates, the members that learn from each slate, and
// the rank that computes each unit.
struct BatchPlan {
  std::int64_t step = 0;
  std::vector<SlateId> slates;  // [batch.slates]; unit: graph puts slates of a graph together
  std::vector<int> unit_begin;  // [units + 1] first slate of each unit
  // [M][slates]: w_mi / sum_i w_mi; 0 if member m must not learn from slate i.
  std::vector<std::vector<double>> weights;
  LeafOwners owners;              // leaves are units
  std::vector<double> rank_cost;  // [ranks] estimated work (BatchPlanner::rank_work)

  int units() const { return static_cast<int>(unit_begin.size()) - 1; }
};

// Makes batch plans: pure, thread-safe.
class BatchPlanner {
 public:
  // `costs`: of each graph, equal on all ranks; `fold`: of each graph (empty: no folds).
  // `joins`: a rank computes all its leaves in one pass (JoinedPass), else one by one.
  // EnsembleConfig::held_out_fold says which fold a member holds out.
  BatchPlanner(const Experiment& experiment, const SlateOrder& order, std::vector<SlateCost> costs,
               std::vector<int> fold, int ranks, bool joins = false);

  // The same batches for other ranks. Needs costs.
  BatchPlanner for_ranks(int ranks) const;

  BatchPlan plan(std::int64_t step) const;
  // Plans a step for the members of this run with training[m]. Other members have weight 0, so
  // nothing is computed for them. `training` does not change the slates and weights of a member.
  BatchPlan plan(std::int64_t step, const std::vector<bool>& training) const;
  // [ranks] What each rank computes in a planned step whose units cost a member `unit_work` [units]:
  // a joined pass with what it fills up and what members compute without learning from it.
  std::vector<double> rank_work(const BatchPlan& plan, std::span<const double> unit_work) const;
  const SlateCost& cost(int graph) const { return costs_[graph]; }
  // Whether member `member` of this run never trains on the graph.
  bool held_out(int member, int graph) const;
  // How many members of this run train on the graph.
  int learners(int graph) const;

 private:
  void cut_units(BatchPlan& plan) const;
  double unit_cost(const BatchPlan& plan, int unit) const;
  void assign(BatchPlan& plan) const;
  double work_of(std::span<const WorkItem> leaves) const;

  BatchConfig batch_;
  EnsembleConfig ensemble_;
  const SlateOrder& order_;
  std::vector<SlateCost> costs_;
  std::vector<int> fold_;
  int ranks_;
  bool joins_, shares_rows_;
};

}  // namespace tpudist
