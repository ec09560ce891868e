#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "data/dataset.hpp"
#include "models/network.hpp"
#include "models/refined_graph.hpp"
#include "train/experiment.hpp"

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
};

// Joins data and models: reads slates, builds their plan, and keeps the network's form of each
// graph from its first use on. Thread-safe.
class UnitBuilder {
 public:
  // Both are borrowed and outlive the builder.
  UnitBuilder(const Dataset& dataset, const Network& network, PlanMode mode);

  Unit build(std::span<const SlateRows> slates) const;

 private:
  // What is kept of a graph.
  struct Cached {
    std::once_flag input_once, refined_once;
    std::vector<std::int32_t> node_class;  // nodes of equal features and opcode: the input's row
    std::shared_ptr<const GraphInput> input;
    std::unique_ptr<const RefinedGraph> refined;
    std::vector<std::int32_t> state_class;  // of the graph's own state table
  };
  const Cached& with_input(int graph) const;
  const Cached& with_refinement(int graph) const;
  // `inputs`: where each slate's graph begins among the unit's input rows.
  Plan dense_plan(const std::vector<Slate>& slates, std::span<const std::int64_t> inputs) const;
  Plan refined_plan(const std::vector<Slate>& slates, std::span<const std::int64_t> inputs) const;
  std::int64_t state_rows(const Slate& slate) const;

  const Dataset& dataset_;
  const Network& network_;
  PlanMode mode_;
  PlanShape shape_;
  int config_features_;
  std::unique_ptr<Cached[]> graphs_;  // [dataset.size()]
};

}  // namespace tpudist
