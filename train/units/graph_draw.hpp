#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/loading/graph_reduction.hpp"
#include "data/loading/slate_order.hpp"
#include "data/schema/graph.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// What the slates of a unit see of their graphs. In a training step edges are dropped
// (`batch.edge_dropout`; Rong et al., "DropEdge: towards deep graph convolutional networks on node
// classification", 2020): each independently, for all messages along it; means over neighbours are
// over the remaining edges. Of graphs with more than `data.reduce.max_nodes` nodes so many are drawn
// (drawn_nodes), also where graphs are scored. A draw belongs to a slate and a step: two slates of a
// graph see different parts, but all members, chunks, ranks and threads see the same of one slate.
// Where graphs are cut into segments, a step sees one of them, as in Graph Segment Training (Cao et
// al., "Learning large graph property prediction via graph segment training", 2023): the scores of
// the others come from a table (SegmentTable). Scoring sees all. Plain data.
struct GraphDraw {
  double dropout = 0;        // share of edges to drop, below 1; 0: keep all
  std::uint64_t key = 0;     // of the step; where graphs are scored, the number of the draw
  bool one_segment = false;  // of graphs that were cut
  double stale_keep = 0.5;   // how likely the table's score of another segment is taken
  // In a training step of `data.reduce.drawn: trained` (backprop-dropout of TpuGraphs' baselines) a
  // slate sees its whole graph and, beside it, a copy of the drawn nodes with the edges between them.
  // What a drawn node adds to the readout comes from the copy, and of the other nodes from the whole
  // graph, without a gradient.
  bool trains = false;
  // For estimates, if >= 0: not a drawn segment, but the one with so many larger ones (counted
  // round).
  int segment = -1;
  // [slates of the unit] identifies the slates of a graph; empty: their indices in the unit.
  std::vector<std::uint64_t> slates = {};
};

// The draw of some slates of step `step` of an experiment, in their order in the unit: a function
// of batch.edge_dropout, seed.order, the step, and epoch and number of each slate. Without slates
// their indices in the unit are used, as for sample plans that estimate costs.
GraphDraw graph_draw(const Experiment& experiment, std::int64_t step,
                     std::span<const SlateId> slates = {});

// The segment that a slate sees, and how its score becomes that of the graph: `scale` times it, plus
// the table's of those other segments that are `taken`. With K segments, of which the drawn one is
// equally likely each, and stale_keep = p: scale = p + (1 - p) K, so that the sum is right on average
// if the table is.
struct SegmentDraw {
  int own = 0;              // among configurable_segments
  std::vector<bool> taken;  // [segments]
  double scale = 1;
};
SegmentDraw segment_draw(const Graph& graph, const GraphDraw& draw, std::size_t slate = 0);

// Nodes of the largest configurable segment.
std::int64_t largest_segment(const Graph& graph);

// Whether a draw leaves a graph whole.
bool keeps_whole(const Graph& graph, const GraphReduction& reduction, const GraphDraw& draw);

// The remaining edges of the graph of slate `slate` of a unit, [m', 2] (consumer, producer), in
// order. They depend on the draw and on the graph's name and edges.
std::vector<std::int32_t> kept_edges(const Graph& graph, const GraphDraw& draw,
                                     std::size_t slate = 0);

// The part of its graph that slate `slate` of a unit sees: some nodes, and the remaining edges
// between them; where it `trains` drawn nodes alone, all nodes and then the drawn ones again.
// `changes`: as of drawn_nodes.
GraphPart drawn_part(const Graph& graph, const GraphReduction& reduction, const GraphDraw& draw,
                     std::size_t slate = 0, std::span<const char> changes = {});

}  // namespace tpudist
