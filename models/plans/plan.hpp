#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tpudist {

// Sparse matrix in compressed rows: y[i] = sum over e in [begin[i], begin[i+1]) of weight[e] *
// x[source[e]]. Entries of a row are sorted by source, equal ones merged (weights added).
struct Csr {
  std::vector<std::int64_t> begin;   // [rows + 1]
  std::vector<std::int32_t> source;  // [entries]
  std::vector<float> weight;         // [entries]; empty: all 1
  std::int64_t rows() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::int64_t entries() const { return static_cast<std::int64_t>(source.size()); }
  float weight_of(std::int64_t entry) const { return weight.empty() ? 1.0f : weight[entry]; }
};

// A sparse product with its exact transpose for the backward pass. With `lanes` = K > 1 both sides
// are [rows / K, K] and one matrix over the rows / K serves all K lanes.
struct Relation {
  Csr in;   // what is made (/ lanes) <- this layer's rows (/ lanes)
  Csr out;  // the transpose
  std::int32_t lanes = 1;
};

// What each row takes from things that are fewer than rows: row i takes thing of[i].
struct Selection {
  std::vector<std::int32_t> of;  // [rows]; empty: row i takes thing i
  Csr rows;                      // transposed, weights 1: the rows that take each thing
  bool identity() const { return of.empty(); }
  std::int32_t operator()(std::int64_t row) const {
    return of.empty() ? static_cast<std::int32_t>(row) : of[row];
  }
};

// One edge set of a layer. Rows with the same neighbours' states share one sum (or max): a group.
struct EdgeSet {
  // groups <- this layer's rows. Weights: how many edges, divided by those of the group for a mean.
  // A max is over the sources; its gradient is shared by equal ones in proportion to the weights.
  Relation sum;
  Selection group;  // next layer's rows take groups
};

// One message-passing layer: what the next layer's rows take from this layer's.
struct Step {
  std::int64_t rows_in = 0, rows_out = 0;
  Selection self;  // a row's own past
  std::vector<EdgeSet> edges;
};

// How much of a step the differences between the scores of a slate depend on: the first ones of
// each. All they take is needed too and comes first on its side. The gradient of a loss that
// ignores a shift of a slate's scores is zero in all others.
struct NeededPart {
  std::int64_t rows = 0;             // of rows_out
  std::int64_t pasts = 0;            // of rows_in: those that are a needed row's past
  std::vector<std::int64_t> groups;  // of each edge set: those that needed rows take
};

// What a configuration's readout takes from the last layer's rows, in two sums: cells of rows, and
// for each configuration its cells. score[k] = sum over cells, sum of count * out[row].
struct Readout {
  Relation cells;  // cells <- rows; weight = multiplicity (for mean readouts divided by the nodes)
  Relation pool;   // [configs] <- cells, weights 1
  // Rows common to all configurations of a slate, with their multiplicities: they only shift the
  // slate's scores. [slates] <- rows; no entries where the builder does not separate them.
  Relation common;
  std::vector<std::int32_t> slate_of_config;  // [configs]
};

// Everything integer that a network needs to run on some configurations of some graphs: a pure
// function of graphs, slates and the network's PlanShape. Nodes and states are numbered through
// over the slates of the unit. Where steps share rows (`self` is no identity) all steps do.
struct Plan {
  std::int64_t nodes = 0, states = 0, configs = 0;  // nodes: rows of the graphs' inputs
  std::int64_t needed = 0;                          // of the first layer's rows
  std::vector<std::int32_t> node;   // [rows of the first layer] input row of each row's node
  std::vector<std::int32_t> state;  // [same] row of the state table, -1 = none (not configurable)
  Csr rows_of_node, rows_of_state;  // transposes of the two, weights 1
  std::vector<std::shared_ptr<const Step>>
      steps;                            // one per message-passing layer; equal ones shared
  std::vector<NeededPart> needed_part;  // of each step
  Readout readout;

  std::int64_t first_rows() const { return static_cast<std::int64_t>(node.size()); }
  std::int64_t rows(std::size_t layer) const {  // before layer 0 .. depth; depth: after the last
    return layer == 0 ? first_rows() : steps[layer - 1]->rows_out;
  }
  std::int64_t needed_rows(std::size_t layer) const {
    return layer == 0 ? needed : needed_part[layer - 1].rows;
  }
  bool shares_rows() const { return !steps.empty() && !steps[0]->self.identity(); }
  std::int64_t total_rows() const;  // over all layers, the measure of cost
  std::uint64_t bytes() const;      // of the integers
};

enum class EdgeDirection { consumer_to_producer, producer_to_consumer };
enum class Aggregation { mean, sum, max };  // of no neighbours: 0

// What a plan must know of one layer: which edge sets it mixes and how.
struct LayerShape {
  std::vector<EdgeDirection> directions;
  Aggregation aggregation = Aggregation::mean;
  bool operator==(const LayerShape&) const = default;
};

// What a plan must know of a network.
struct PlanShape {
  std::vector<LayerShape> layers;
  bool mean_readout = false;  // weights of the readout are 1 / nodes instead of 1
};

// One slate as a plan builder sees it. Spans are borrowed for the call.
struct PlanSlate {
  std::int64_t nodes = 0;
  std::span<const std::int32_t> edges;  // [m, 2] (consumer, producer)
  std::span<const std::int32_t>
      config_nodes;  // [nc]; empty: the state applies to all nodes of a configuration (tile)
  std::int64_t configs = 0;  // K
  std::span<const std::int32_t>
      states;                   // [K, nc], or [K] for tile; rows of this slate's state table
  std::int64_t state_rows = 0;  // rows of this slate's state table
  // [nodes] row of the graph's inputs that each node takes, and how many there are: nodes of equal
  // features and opcode can share one. Empty: one for each node.
  std::span<const std::int32_t> input_row = {};
  std::int64_t input_rows = 0;
  // Where the graph's input rows begin among those of the unit; -1: behind the slate before.
  std::int64_t input_begin = -1;
};

// The reference: one row for each (node, configuration) in every layer, [node, K] with the
// configurations as lanes. With several slates of unequal K the matrices are written out per row
// (lanes = 1). Row order, the same in all layers: nodes that are needed in more layers first
// (needed_levels), then by slate, node, configuration. A node that no configuration reaches has K
// equal rows; the readout takes the first of them as common to the slate. Pure, thread-safe.
Plan build_dense_plan(std::span<const PlanSlate> slates, const PlanShape& shape);

// Throws Error when a plan breaks an invariant (sizes, sorted sources, exact transposes, ranges):
// for tests and debug runs.
void check_plan(const Plan& plan);

}  // namespace tpudist
