#pragma once

#include <cstdint>
#include <vector>

#include "data/schema/graph.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Which edges a graph keeps in a training step (`batch.edge_dropout`; Rong et al., "DropEdge:
// towards deep graph convolutional networks on node classification", 2020). Each edge is dropped by
// itself, for all messages along it, and the mean over neighbours is that over those that are left.
// The draw belongs to a graph and a step: all slates of the graph, all members, chunks, ranks and
// threads see the same edges. Plain data.
struct EdgeDraw {
  double dropout = 0;     // share of edges that are dropped, below 1; 0: all are kept
  std::uint64_t key = 0;  // of the step
};

// The draw of step `step` of an experiment: a function of batch.edge_dropout, seed.order and the
// step.
EdgeDraw edge_draw(const Experiment& experiment, std::int64_t step);

// The edges of a graph that are left, [m', 2] (consumer, producer), in their order. Which these are
// depends on the draw and on the graph's name and edges.
std::vector<std::int32_t> kept_edges(const Graph& graph, const EdgeDraw& draw);

}  // namespace tpudist
