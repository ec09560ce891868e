#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/loading/dataset.hpp"
#include "models/network/network.hpp"
#include "models/plans/build_plan.hpp"
#include "models/plans/plan_cost.hpp"
#include "train/experiment/experiment.hpp"
#include "train/units/graph_draw.hpp"
#include "train/units/prepared_graphs.hpp"

namespace tpudist {

// Rows of one graph that form a slate.
struct SlateRows {
  int graph = 0;
  std::vector<std::int64_t> rows;
};

// A unit ready to run, with its slates.
struct Unit {
  std::vector<Slate> slates;
  // [slates] if graphs are cut; else empty.
  std::vector<SegmentDraw> segments;
  std::vector<SlateRows> rows;
  UnitInput input;
  // Only if the unit's single slate is computed in chunks; `input` is then empty. Every chunk
  // begins with the slate's first configuration. The other configurations are spread over the
  // chunks in their order.
  std::vector<UnitInput> chunks;
  // The times when reading the slates began and ended, and when plan and input were ready.
  std::chrono::steady_clock::time_point begin, read, planned;
  const char* label = nullptr;  // the graph's name in a trace; null: no trace
};

// The effect of refinement on a unit, measured on its refined plan.
struct PlanComparison {
  Plan refined;
  std::int64_t dense_rows = 0;        // of each layer of the dense plan
  PlanCost dense_cost, refined_cost;  // of one member
  double drawn_seconds = 0;           // to draw and refine parts of graphs; 0: none drawn
  bool refined_pays() const;          // decides for `plan: auto`
  // 1 if no layer computes anything; the head does not count.
  double saving() const {
    return refined_cost.step() > 0 ? dense_cost.step() / refined_cost.step() : 1;
  }
};

// Cost of a unit for one member with the plan that `UnitBuilder::build` chooses.
struct UnitEstimate {
  PlanCost cost;
  bool refined = false;

  // Work in floating-point operations: the products with the weights, and memory traffic as
  // operations. Each float of a state or of a neighbour counts as the operations that could run in
  // the time that reading and writing it takes. Without this second part narrow layers and long
  // lists of neighbours would seem too cheap.
  double step_work() const {
    return cost.step() + kStepOperations * cost.states + kStepEntry * cost.entries;
  }
  double forward_work() const {
    return cost.forward + kForwardOperations * cost.states + kForwardEntry * cost.entries;
  }

 private:
  static constexpr double kStepOperations = 400, kForwardOperations = 130;
  static constexpr double kStepEntry = 80, kForwardEntry = 30;
};

// Joins data and models: reads slates, builds their plan, and keeps each graph that it has
// prepared. Thread-safe except share_graphs() and fix_order().
class UnitBuilder {
 public:
  // Borrows data set and network, which must outlive the builder. Slates of more than
  // `config_chunk` configurations (0: no limit; at least 2) are cut into chunks of that size.
  UnitBuilder(const Dataset& dataset, const Network& network, PlanMode mode, int config_chunk = 0,
              UnitUse use = UnitUse::scores);

  // If the processes of the node share the data (data.cache_dir): prepares all graphs now, in files
  // that these processes share too. `draws_edges`: all units will have randomly dropped edges. Call
  // before the first use.
  void share_graphs(bool draws_edges, ThreadPool& pool);
  // Bytes that share_graphs() maps for all processes of the node together; else 0.
  std::uint64_t shared_bytes() const { return prepared_.shared_bytes(); }

  // Reads the slates, plans the unit on the drawn parts of their graphs, and packs the unit for the
  // network's device. Slates that see drawn parts share no rows: each has a graph of its own.
  // Throws DataError or IoError when reading fails.
  Unit build(std::span<const SlateRows> slates, const GraphDraw& draw = {}) const;
  // The same for slates that are already read, or whose configurations no file has.
  // `kept`: of the graph of the single slate, for a network with kept_channels().
  Unit build(std::vector<Slate> slates, const GraphDraw& draw = {}, KeptRows* kept = nullptr) const;

  // For scoring: from now on a configuration's score has the same bits in any slate, which kept rows
  // need. A unit of one slate then has a plan by build_fixed_plan, or with kept rows by
  // build_kept_plan. Nothing changes if plans are dense or the network has no kept_channels().
  void fix_order();
  bool fixes_order() const { return fixes_order_; }

  // The number of nodes that a slate sees.
  std::int64_t nodes(const Slate& slate) const { return dataset_.seen_nodes(slate.graph); }
  // The name of a graph of the data set.
  const std::string& graph_name(int graph) const { return dataset_.graph(graph).name; }

  // The number of members to compute together on a unit, if not configured.
  int members_together(const Unit& unit) const;

  // Whether a device joins units to compute gradients. They are built unprepared.
  bool joins_units() const { return use_ != UnitUse::scores && network_.device(); }
  UnitInput join(const std::vector<std::vector<const UnitInput*>>& blocks) const {
    return network_.join(blocks);
  }

  // The cost of a unit of these slates. Builds its refined plan and discards it.
  UnitEstimate estimate(std::span<const Slate> slates, const GraphDraw& draw = {}) const;

  // Compares both plans of a unit of these slates, without building the dense plan.
  PlanComparison compare(std::span<const Slate> slates, const GraphDraw& draw = {}) const;
  // The work of a built unit for one member (UnitEstimate::step_work).
  double step_work(const Unit& unit) const;
  // Floats in the states of all layers of a plan, for one member (PlanCost::states).
  double state_floats(const Plan& plan) const;
  // As of Network.
  double leaf_bytes(const Plan& plan) const { return network_.leaf_bytes(plan); }
  // The part of a unit's plan that gradients need; the plan itself where they need all of it.
  std::shared_ptr<const Plan> computed_part(std::shared_ptr<const Plan> plan) const;
  // Whether `build` uses the refined plan.
  bool takes_refined(const PlanComparison& plans) const;

 private:
  // The graphs of one unit as each slate sees them.
  class Graphs;
  // [slates] The first of the unit's input rows that belong to the slate's graph. The unit has the
  // rows of a graph once, so slates of one graph have the same number.
  std::vector<std::int64_t> input_begins(std::span<const Slate> slates) const;
  std::vector<PlanSlate> views(std::span<const Slate> slates, Graphs& graphs) const;
  Plan dense_plan(std::span<const Slate> slates, Graphs& graphs) const;
  Plan refined_plan(std::span<const Slate> slates, Graphs& graphs) const;
  PlanComparison compare(std::span<const Slate> slates, Graphs& graphs) const;
  Plan chosen_plan(std::span<const Slate> slates, Graphs& graphs) const;
  RefinedSlate refined_view(const Slate& slate, std::size_t at, Graphs& graphs) const;
  Plan fixed_plan(const Slate& slate, Graphs& graphs, KeptUse& use) const;
  UnitInput input_of(std::span<const Slate> slates, Graphs& graphs) const;
  UnitInput input_of(std::span<const Slate> slates, Plan plan, KeptUse kept = {}) const;
  void add_inputs(Unit& unit, Graphs& graphs, KeptRows* kept) const;
  std::int64_t state_rows(const Slate& slate) const;

  const Dataset& dataset_;
  const Network& network_;
  PlanMode mode_;
  std::size_t config_chunk_;
  UnitUse use_;
  bool fixes_order_ = false;
  PlanShape shape_;
  int config_features_;
  NetworkWork work_;
  PreparedGraphs prepared_;
};

}  // namespace tpudist
