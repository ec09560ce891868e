#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/loading/slate_order.hpp"
#include "experiment/experiment.hpp"
#include "schema/graph.hpp"

namespace tpudist {

// The edges that the slates of a unit keep in a training step (`batch.edge_dropout`; Rong et al.,
// "DropEdge: towards deep graph convolutional networks on node classification", 2020). Each edge is
// dropped independently, for all messages along it; means over neighbours are over the remaining
// edges. A draw belongs to a slate and a step: two slates of a graph have different edges, but all
// members, chunks, ranks and threads have the same for one slate. Plain data.
struct EdgeDraw {
  double dropout = 0;     // share of edges to drop, below 1; 0: keep all
  std::uint64_t key = 0;  // of the step
  // [slates of the unit] identifies the slates of a graph; empty: their indices in the unit.
  std::vector<std::uint64_t> slates;
};

// The draw of some slates of step `step` of an experiment, in their order in the unit: a function
// of batch.edge_dropout, seed.order, the step, and epoch and number of each slate. Without slates
// their indices in the unit are used, as for sample plans that estimate costs.
EdgeDraw edge_draw(const Experiment& experiment, std::int64_t step,
                   std::span<const SlateId> slates = {});

// The remaining edges of the graph of slate `slate` of a unit, [m', 2] (consumer, producer), in
// order. They depend on the draw and on the graph's name and edges.
std::vector<std::int32_t> kept_edges(const Graph& graph, const EdgeDraw& draw,
                                     std::size_t slate = 0);

}  // namespace tpudist
