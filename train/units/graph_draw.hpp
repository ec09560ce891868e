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

// The parts of their graphs that the slates of a unit see. Plain data. A training step drops edges
// (`batch.edge_dropout`; Rong et al., "DropEdge: towards deep graph convolutional networks on node
// classification", 2020), each independently, for all messages along the edge. Means over
// neighbours are over the remaining edges. A slate sees at most `data.reduce.max_nodes` nodes,
// drawn for it (drawn_nodes), in training and in scoring. A draw belongs to a slate and a step: two
// slates of a graph see different parts, but all members, chunks, ranks and threads see one slate
// alike. If graphs are cut into segments, a step sees one segment, and a table has the scores of
// the others (SegmentTable), as in Graph Segment Training (Cao et al., "Learning large graph
// property prediction via graph segment training", 2023). Scoring sees all.
struct GraphDraw {
  double dropout = 0;        // share of edges to drop, below 1; 0: keep all
  std::uint64_t key = 0;     // of the step; in scoring, the number of the draw
  bool one_segment = false;  // whether a slate of a cut graph sees one segment
  double stale_keep = 0.5;   // probability to take another segment's score from the table
  // In a training step of `data.reduce.drawn: trained` (backprop-dropout of TpuGraphs' baselines) a
  // slate sees its whole graph and, beside it, a copy of the drawn nodes with the edges between
  // them. The readout takes drawn nodes from the copy, and other nodes from the whole graph,
  // without a gradient.
  bool trains = false;
  // If >= 0, for estimates: the segment of this rank by size, modulo their number. Else drawn.
  int segment = -1;
  // [slates of the unit] numbers that identify the slates of a graph; empty: their indices.
  std::vector<std::uint64_t> slates = {};
};

// The draw of some slates of step `step` of an experiment, in their order in the unit: a function
// of batch.edge_dropout, seed.order, the step, and epoch and number of each slate. Without `slates`
// uses indices in the unit, as for sample plans that estimate costs.
GraphDraw graph_draw(const Experiment& experiment, std::int64_t step,
                     std::span<const SlateId> slates = {});

// The segment that a slate sees. The graph's score is `scale` times the score of this segment, plus
// the table's scores of the other segments that are `taken`. With K equally likely segments and
// stale_keep = p, scale = p + (1 - p) K: the sum is then right on average if the table is right.
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
// order: a function of the draw and of the graph's name and edges.
std::vector<std::int32_t> kept_edges(const Graph& graph, const GraphDraw& draw,
                                     std::size_t slate = 0);

// The part of its graph that slate `slate` of a unit sees: some nodes, and the remaining edges
// between them. With GraphDraw::trains all nodes, and then the drawn nodes again.
GraphPart drawn_part(const Graph& graph, const GraphReduction& reduction, const GraphDraw& draw,
                     std::size_t slate = 0);

}  // namespace tpudist
