#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/loading/slate_order.hpp"
#include "data/schema/graph.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Which edges the slates of a unit keep in a training step (`batch.edge_dropout`; Rong et al.,
// "DropEdge: towards deep graph convolutional networks on node classification", 2020). Each edge is
// dropped by itself, for all messages along it, and the mean over neighbours is that over those that
// are left. A draw belongs to a slate and a step: two slates of a graph see edges of their own, while
// all members, chunks, ranks and threads see those of the slate. Plain data.
struct EdgeDraw {
  double dropout = 0;     // share of edges that are dropped, below 1; 0: all are kept
  std::uint64_t key = 0;  // of the step
  // [slates of the unit] what tells the slates of a graph apart; empty: their places in the unit.
  std::vector<std::uint64_t> slates;
};

// The draw of some slates of step `step` of an experiment, in the order in which they stand in their
// unit: a function of batch.edge_dropout, seed.order, the step, and epoch and number of each slate.
// Without slates the places in the unit stand for them, as samples of what a step costs take it.
EdgeDraw edge_draw(const Experiment& experiment, std::int64_t step,
                   std::span<const SlateId> slates = {});

// The edges of the graph of slate `slate` of a unit that are left, [m', 2] (consumer, producer), in
// their order. Which these are depends on the draw and on the graph's name and edges.
std::vector<std::int32_t> kept_edges(const Graph& graph, const EdgeDraw& draw,
                                     std::size_t slate = 0);

}  // namespace tpudist
