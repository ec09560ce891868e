#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/loading/dataset.hpp"
#include "models/network.hpp"
#include "models/plans/plan_cost.hpp"
#include "train/experiment/experiment.hpp"
#include "train/units/edge_draw.hpp"
#include "train/units/prepared_graphs.hpp"

namespace tpudist {

// Rows of one graph that are to form a slate.
struct SlateRows {
  int graph = 0;
  std::vector<std::int64_t> rows;
};

// A unit ready to run, with the slates it was made from.
struct Unit {
  std::vector<Slate> slates;
  UnitInput input;
  // Where the one slate of a unit is computed in chunks: each chunk begins with the first
  // configuration of the slate, and the others follow in order, chunk after chunk. `input` is then
  // empty.
  std::vector<UnitInput> chunks;
  // When reading its slates began, when it was done, and when plan and input were.
  std::chrono::steady_clock::time_point begin, read, planned;
  const char* label = nullptr;  // the graph's name in a trace; null: nobody traces
};

// What refinement does for a unit, measured on its refined plan.
struct PlanComparison {
  Plan refined;
  std::int64_t dense_rows = 0;        // of each layer of the dense plan
  PlanCost dense_cost, refined_cost;  // of one member
  double build_seconds = 0;           // of the refined plan, its graphs being prepared already
  double drawn_seconds =
      0;  // of drawing edges and of all that is built anew for them; 0: none drawn
  bool refined_pays() const;  // what `plan: auto` goes by
  double saving() const { return dense_cost.step() / refined_cost.step(); }
};

// What a unit costs one member with the plan that `UnitBuilder::build` takes.
struct UnitEstimate {
  PlanCost cost;
  bool refined = false;

  // Work in floating-point operations: the products with the weights, and for each float of a state
  // as many operations as could be done while it is read and written. Without the latter narrow
  // layers would seem cheaper than they are.
  double step_work() const { return cost.step() + kStepOperations * cost.states; }
  double forward_work() const { return cost.forward + kForwardOperations * cost.states; }

 private:
  static constexpr double kStepOperations = 400, kForwardOperations = 130;
};

// Joins data and models: reads slates, builds their plan, and keeps the network's form of each
// graph from its first use on. Thread-safe but for share_graphs().
class UnitBuilder {
 public:
  // Both are borrowed and outlive the builder. Slates of more than `config_chunk` configurations
  // (0: none; at least 2) are cut into chunks of so many. `of_differences`: the units are for
  // gradients of losses that ignore a shift at all scores (UnitInput::of_differences).
  UnitBuilder(const Dataset& dataset, const Network& network, PlanMode mode, int config_chunk = 0,
              bool of_differences = false);

  // Prepares all graphs now, in files that the processes of the node share, where they share the data
  // (data.cache_dir). `draws_edges`: all units will be built on edges that are drawn. To be called
  // before the first use.
  void share_graphs(bool draws_edges, ThreadPool& pool);
  // What share_graphs() holds for all processes of the node together; else 0.
  std::uint64_t shared_bytes() const { return prepared_.shared_bytes(); }

  // Reads the slates, plans the unit on the edges that are drawn (all of them by default) and packs
  // it for the network's device. Throws DataError or IoError where reading fails. Where edges are
  // dropped, no two slates share rows: each has a graph of its own.
  Unit build(std::span<const SlateRows> slates, const EdgeDraw& edges = {}) const;

  // Of a graph of the data set.
  const std::string& graph_name(int graph) const { return dataset_.graph(graph).name; }

  // How many members to compute together on a unit, where there is a choice.
  int members_together(const Unit& unit) const;

  // What a unit of these slates costs. Its refined plan is built for it and thrown away.
  UnitEstimate estimate(std::span<const Slate> slates, const EdgeDraw& edges = {}) const;

  // Compares both plans of a unit of these slates of the data set; the dense one is not built.
  PlanComparison compare(std::span<const Slate> slates, const EdgeDraw& edges = {}) const;
  // Numbers in the states of all layers of a plan, of one member (PlanCost::states).
  double state_floats(const Plan& plan) const;
  // Whether `build` takes the refined plan.
  bool takes_refined(const PlanComparison& plans) const;

 private:
  // The graphs of one unit with the edges that its slates see.
  class Graphs;
  // Where each slate's graph begins among the unit's input rows: those of a graph stand once.
  std::vector<std::int64_t> input_begins(std::span<const Slate> slates) const;
  Plan dense_plan(std::span<const Slate> slates, Graphs& graphs) const;
  Plan refined_plan(std::span<const Slate> slates, Graphs& graphs) const;
  PlanComparison compare(std::span<const Slate> slates, Graphs& graphs) const;
  Plan chosen_plan(std::span<const Slate> slates, Graphs& graphs) const;
  UnitInput input_of(std::span<const Slate> slates, Graphs& graphs) const;
  void add_inputs(Unit& unit, Graphs& graphs) const;
  std::int64_t state_rows(const Slate& slate) const;

  const Dataset& dataset_;
  const Network& network_;
  PlanMode mode_;
  std::size_t config_chunk_;
  bool of_differences_;
  PlanShape shape_;
  int config_features_;
  NetworkWork work_;
  PreparedGraphs prepared_;
};

}  // namespace tpudist
