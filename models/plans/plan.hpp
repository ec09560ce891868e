#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/plans/csr.hpp"

namespace tpudist {

// A sparse matrix for the forward pass and its exact transpose for the backward pass. With
// `replicas` = K > 1 both sides are [rows / K, K], and one small matrix over rows / K serves all K
// replicas: replica k of a row takes replica k of the row's sources.
struct SparseMatrix {
  Csr forward;
  Csr transposed;
  std::int32_t replicas = 1;
};

// A gather index: row i of the result is row index[i] of a matrix with fewer rows. An empty index
// is the identity.
struct GatherIndex {
  std::vector<std::int32_t> index;  // [rows]
  Csr transposed;                   // for each row of the smaller matrix, the rows that take it
  bool is_identity() const { return index.empty(); }
  std::int32_t operator()(std::int64_t row) const {
    return index.empty() ? static_cast<std::int32_t>(row) : index[row];
  }
};

// One edge set of a layer. A neighbourhood is what a node sees along the edges of the set: the
// multiset of its neighbours' rows. Rows that see the same one share it, so that it is aggregated
// once. All nodes of a configuration share one neighbourhood along EdgeKind::nodes, and all
// configurations of a slate share one at each node along EdgeKind::configs.
struct EdgeSet {
  // [neighbourhoods] <- the rows before the layer. A weight counts parallel edges; for a mean it is
  // divided by the number of edges. A maximum is taken over the sources; equal largest sources
  // share its gradient in proportion to the weights.
  SparseMatrix aggregate;
  GatherIndex neighbourhood;  // which neighbourhood each row behind the layer takes
};

// One message-passing layer: what each row behind the layer takes from the rows before it.
struct PlanLayer {
  std::int64_t rows_in = 0, rows_out = 0;
  GatherIndex self;  // the row before the layer that holds the same node's state
  std::vector<EdgeSet> edges;
  // [rows_out] the state that a row takes, -1: not configurable; and the transpose of this index.
  // Both are empty in a layer that does not join states.
  std::vector<std::int32_t> state;
  Csr rows_of_state;
};

// How many rows and neighbourhoods of a layer get a gradient under a translation-invariant loss.
// They come first on their side; the gradient of all others is zero.
struct NeededCounts {
  std::int64_t rows = 0;       // of rows_out
  std::int64_t self_rows = 0;  // of rows_in: those that a needed row takes as its own state
  std::vector<std::int64_t> neighbourhoods;  // [edge sets]: those that needed rows take
};

// How the scores are added up from the rows behind the last layer, in two steps:
// score[k] = sum of k's cells + the common sum of k's slate.
struct Readout {
  // [cells] <- rows. A weight counts how many nodes a row stands for; for a mean readout it is
  // divided by the number of nodes.
  SparseMatrix cells;
  SparseMatrix scores;  // [configurations] <- cells, weights 1
  // [slates] <- rows that all configurations of a slate share, weighted likewise. They shift the
  // slate's scores and do not change their order.
  SparseMatrix common;
  std::vector<std::int32_t> slate_of_config;  // [configurations]
  // [slates] how many nodes common rows stand for that the plan leaves out; empty: it has them all.
  std::vector<double> left_out;
};

// Everything integer that a network needs to run on some configurations of some graphs: a pure
// function of graphs, slates and the network's PlanShape. Nodes and states are numbered through
// over the slates of a unit. `self` is the identity in all layers or in none, except in the needed
// part of a plan.
struct Plan {
  std::int64_t nodes = 0;              // rows of the graphs' inputs
  std::int64_t states = 0;             // rows of the slates' state tables
  std::int64_t configs = 0;            // of all slates
  std::int64_t needed_first_rows = 0;  // as in NeededCounts, of the rows before the first layer
  std::vector<std::int32_t> node;      // [first rows] input row of each row's node
  std::vector<std::int32_t> state;     // [first rows] state of each row; -1: not configurable
  Csr rows_of_node, rows_of_state;     // the transposes of these two, weights 1
  // [rows] the configuration of each row, the same at all depths, of a dense plan whose
  // PlanShape::per_element asks for it; otherwise empty.
  std::vector<std::int32_t> config;
  // [configs] the state that all nodes of a configuration have; empty where states belong to nodes.
  std::vector<std::int32_t> state_of_config;
  std::vector<std::shared_ptr<const PlanLayer>> layers;  // equal ones are one object
  std::vector<NeededCounts> needed_counts;               // [layers]
  Readout readout;

  std::int64_t first_rows() const { return static_cast<std::int64_t>(node.size()); }
  // Rows before layer 0 .. depth; depth: behind the last.
  std::int64_t rows(std::size_t layer) const {
    return layer == 0 ? first_rows() : layers[layer - 1]->rows_out;
  }
  std::int64_t needed_rows(std::size_t layer) const {
    return layer == 0 ? needed_first_rows : needed_counts[layer - 1].rows;
  }
  // Whether rows stand for several (node, configuration): the plan is a refined one.
  bool is_refined() const { return !layers.empty() && !layers[0]->self.is_identity(); }
  std::int64_t total_rows() const;  // before and behind all layers
  std::uint64_t bytes() const;      // of the integers
};

}  // namespace tpudist
