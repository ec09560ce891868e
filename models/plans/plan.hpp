#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/plans/csr.hpp"

namespace tpudist {

// Which pairs of (node, configuration) the edges of an edge set connect.
enum class EdgeKind {
  consumer_to_producer,  // along the edges of the graph, within a configuration
  producer_to_consumer,  // against the edges of the graph
  // The same two ways along the config edges of the graph (Graph::config_edges).
  config_consumer_to_producer,
  config_producer_to_consumer,
  nodes,    // every node with all nodes of its configuration, including itself
  configs,  // every configuration of a slate with all of them, including itself, at the same node
};

// How the states of a node's neighbours are combined, channel by channel. A node without neighbours
// gets 0.
enum class Aggregation { mean, sum, max };

// What a plan depends on in a layer that uses other rows: its edge sets, and how it combines them.
struct LayerShape {
  std::vector<EdgeKind> edge_kinds;  // one edge set each
  // With `mean` the weights of edge sets along the graph include the divisors. All other weights
  // are multiplicities.
  Aggregation aggregation = Aggregation::mean;
  bool joins_states = false;  // rows after the layer use their configuration's state
  bool operator==(const LayerShape&) const = default;
};

// Properties of a network that a plan depends on.
struct PlanShape {
  std::vector<LayerShape> layers;
  bool mean_readout = false;  // the weights of the readout are 1 / nodes instead of 1
  bool early_join = true;     // rows before the first layer use their configuration's state
  // Layers treat every (node, configuration) differently. This needs a dense plan: all of its rows
  // are then needed, and it records each row's configuration (Plan::config). Refined plans of such
  // a network are for calls without dropout; they are built as if this were false.
  bool per_element = false;

  // Whether a layer has an edge set of this kind.
  bool has(EdgeKind kind) const {
    return std::ranges::any_of(layers, [&](const LayerShape& layer) {
      return std::ranges::count(layer.edge_kinds, kind) > 0;
    });
  }
  // Whether a layer mixes the configurations of a slate: rows then depend on the whole slate.
  bool mixes_configs() const { return has(EdgeKind::configs); }
  bool takes_config_edges() const {
    return has(EdgeKind::config_consumer_to_producer) || has(EdgeKind::config_producer_to_consumer);
  }
};

// A sparse matrix for the forward pass and its exact transpose for the backward pass. With
// `replicas` = K > 1 one matrix with 1 / K of the rows serves all K replicas: replica k of a row
// uses replica k of the row's sources.
struct SparseMatrix {
  Csr forward;
  Csr transposed;
  std::int32_t replicas = 1;
};

// A gather index: row i of the result is row index[i] of a matrix with fewer rows. An empty index
// is the identity.
struct GatherIndex {
  std::vector<std::int32_t> index;  // [rows]
  Csr transposed;                   // for each row of the smaller matrix, the rows that gather it
  bool is_identity() const { return index.empty(); }
  std::int32_t operator()(std::int64_t row) const {
    return index.empty() ? static_cast<std::int32_t>(row) : index[row];
  }
};

// One edge set of a layer. A neighbourhood is the multiset of rows of a node's neighbours along the
// edges of the set. Equal neighbourhoods are stored once and shared, so each is aggregated once.
// All nodes of a configuration share one neighbourhood along EdgeKind::nodes, and all
// configurations of a slate share one at each node along EdgeKind::configs.
struct EdgeSet {
  // [neighbourhoods] <- the rows before the layer. A weight counts parallel edges; for a mean it is
  // divided by the number of edges. A maximum is over the sources; equal largest sources share its
  // gradient in proportion to the weights.
  SparseMatrix aggregate;
  GatherIndex neighbourhood;  // the neighbourhood of each row after the layer
};

// One message-passing layer: for each row after the layer, the rows before it that it depends on.
struct PlanLayer {
  std::int64_t rows_in = 0, rows_out = 0;
  GatherIndex self;  // the row before the layer with the same node's state
  std::vector<EdgeSet> edges;
  // [rows_out] the state of a row, -1: not configurable. Empty if the layer does not join states.
  std::vector<std::int32_t> state;
};

// The numbers of rows and neighbourhoods of a layer that get a gradient under a
// translation-invariant loss. They come first on their side; the gradient of all others is zero.
struct NeededCounts {
  std::int64_t rows = 0;                     // of rows_out
  std::int64_t self_rows = 0;                // of rows_in: own-state rows of needed rows
  std::vector<std::int64_t> neighbourhoods;  // [edge sets]: neighbourhoods of needed rows
};

// How scores are summed from the rows after the last layer, in two steps: score[k] = sum of the
// cells of k + common sum of k's slate. The transposes of `cells` and `common` lack the rows of
// nodes that are constants (NodeUse).
struct Readout {
  // [cells] <- rows. A weight counts the nodes that a row represents; for a mean readout it is
  // divided by the number of nodes.
  SparseMatrix cells;
  SparseMatrix scores;  // [configurations] <- cells, weights 1
  // [slates] <- rows that all configurations of a slate share, with the same weights. They shift
  // the slate's scores and do not change their order.
  SparseMatrix common;
  std::vector<std::int32_t> slate_of_config;  // [configurations]
  // [slates] number of nodes represented by common rows that the plan leaves out; empty: none are
  // left out.
  std::vector<double> left_out;
};

struct JoinedUnits;  // models/plans/join_plans.hpp

// All integers that a network needs to run on some configurations of some graphs: a pure function
// of graphs, slates and the network's PlanShape. Nodes and states are numbered consecutively over
// the slates of a unit. `self` is the identity in all layers or in none, except in the needed part
// of a plan.
struct Plan {
  std::int64_t nodes = 0;              // rows of the graphs' inputs
  std::int64_t states = 0;             // rows of the slates' state tables
  std::int64_t configs = 0;            // of all slates
  std::int64_t needed_first_rows = 0;  // as NeededCounts::rows, for the rows before the first layer
  std::vector<std::int32_t> node;      // [first rows] input row of each row's node
  std::vector<std::int32_t> state;     // [first rows] state of each row; -1: not configurable
  Csr rows_of_node, rows_of_state;     // the transposes of these two, weights 1
  // [rows] the configuration of each row, the same at all depths; only in a dense plan with
  // PlanShape::per_element, otherwise empty.
  std::vector<std::int32_t> config;
  // [configs] the state common to all nodes of a configuration; empty if each node has its own.
  std::vector<std::int32_t> state_of_config;
  std::vector<std::shared_ptr<const PlanLayer>> layers;  // equal layers are one object
  std::vector<NeededCounts> needed_counts;               // [layers]
  Readout readout;
  // The units of a plan that join_plans made; null in the plan of one unit.
  std::shared_ptr<const JoinedUnits> units;

  std::int64_t first_rows() const { return static_cast<std::int64_t>(node.size()); }
  // Rows before layer 0 .. depth; depth: after the last.
  std::int64_t rows(std::size_t layer) const {
    return layer == 0 ? first_rows() : layers[layer - 1]->rows_out;
  }
  std::int64_t needed_rows(std::size_t layer) const {
    return layer == 0 ? needed_first_rows : needed_counts[layer - 1].rows;
  }
  // Whether a row may represent several (node, configuration): the plan is refined.
  // An empty index is no identity where a layer computes no row (build_kept_plan).
  bool is_refined() const {
    return !layers.empty() && (layers[0]->rows_out == 0 || !layers[0]->self.is_identity());
  }
  std::int64_t total_rows() const;  // before and after all layers
  std::uint64_t bytes() const;      // of the integers
};

// Returns the part of a plan that influences the differences between the scores of a slate, as a
// plan of its own. It has the rows and neighbourhoods counted by NeededCounts, in the same order,
// and a readout without common rows, which records how many nodes these represent
// (Readout::left_out). If the readout is a sum or a mean and everything after it is affine, a
// network computes the same values on the part as on the whole plan, except for a constant in each
// slate's scores. So losses that ignore such a shift have the same gradient.
//
// A layer that groups rows (all nodes of a configuration, or all configurations of a node) needs
// whole groups: if fewer rows after it are needed, as before a late join, all rows up to there are
// kept. `shape`: that of the plan. Null if the part is the whole plan, or if at some depth no row
// is needed.
std::shared_ptr<const Plan> needed_part(const Plan& plan, const PlanShape& shape);

// Returns the part's share, 0 .. 1, of the rows before, between and after the layers.
double needed_share(const Plan& plan, const PlanShape& shape);

}  // namespace tpudist
