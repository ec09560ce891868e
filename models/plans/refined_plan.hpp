#pragma once

#include <cstdint>
#include <span>

#include "models/plans/plan.hpp"
#include "models/plans/refined_graph.hpp"

namespace tpudist {

// One slate for the refined builder. Spans and graph are borrowed for the call.
struct RefinedSlate {
  const RefinedGraph* graph = nullptr;
  std::int64_t configs = 0;                   // K
  std::span<const std::int32_t> states;       // as in PlanSlate
  std::span<const std::int32_t> state_class;  // [state_rows] equal numbers for states of equal
                                              // content, in all slates of one graph
  std::int64_t state_rows = 0;
  std::int64_t input_begin = -1;  // as in PlanSlate; input rows are the graph's node classes
};

// Exact state sharing by colour refinement over (node, configuration): a state after l layers
// depends only on a node's own features, its configuration's state and its neighbours' states
// before, so that equal inputs get one row (theory: Bollen et al., "Learning graph neural networks
// using exact compression", arXiv 2304.14793; Sourek et al., "Lossless compression of structured
// convolutional models via lifting", arXiv 2007.06567). Slates of the same graph are refined
// together. Rows of a layer: first those that the differences of the scores depend on; within each
// part by graph, first those that configurations reach, by first occurrence over (node,
// configuration), then the others. What all configurations of a graph share at the readout is kept
// apart as `common`. Pure, thread-safe. `hash_bits` < 64 is for tests.
Plan build_refined_plan(std::span<const RefinedSlate> slates, int hash_bits = 64);

}  // namespace tpudist
