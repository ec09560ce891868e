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
  std::vector<float> weight;         // [entries]
  std::int64_t rows() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::int64_t entries() const { return static_cast<std::int64_t>(source.size()); }
};

// A sparse product from one layer's rows to the next one's, with its exact transpose for the
// backward pass. With `lanes` = K > 1 both sides are [rows / K, K] and one matrix over the rows / K
// serves all K lanes.
struct Relation {
  Csr in;   // next layer's rows (/ lanes) <- this layer's rows (/ lanes)
  Csr out;  // the transpose: this layer's rows <- next layer's
  std::int32_t lanes = 1;
};

// One message-passing layer: what the next layer's rows take from this layer's.
struct Step {
  std::int64_t rows_in = 0, rows_out = 0;
  std::optional<Relation> self;  // a row's own past; absent: row i's past is row i
  std::vector<Relation>
      edges;  // one for each edge set the layer mixes, weights with the layer's normalisation
};

// What a configuration's readout takes from the last layer's rows: score[k] = sum of count *
// out[row].
struct Readout {
  Csr pool;  // [configs] <- rows; weight = multiplicity (for mean readouts divided by the nodes)
  Csr transpose;  // [rows] <- configs
  // Rows common to all configurations of a slate, with their multiplicities: they only shift the
  // slate's scores. [slates] <- rows; no entries where the builder does not separate them.
  Csr common, common_transpose;
  std::vector<std::int32_t> slate_of_config;  // [configs]
};

// Everything integer that a network needs to run on some configurations of some graphs: a pure
// function of graphs, slates and the network's PlanShape. Nodes and states are numbered through
// over the slates of the unit.
struct Plan {
  std::int64_t nodes = 0, states = 0, configs = 0;
  std::vector<std::int32_t> node;   // [rows of the first layer] node of each row
  std::vector<std::int32_t> state;  // [same] row of the state table, -1 = none (not configurable)
  Csr rows_of_node, rows_of_state;  // transposes of the two, weights 1
  std::vector<std::shared_ptr<const Step>>
      steps;  // one per message-passing layer; equal ones shared
  Readout readout;

  std::int64_t first_rows() const { return static_cast<std::int64_t>(node.size()); }
  std::int64_t total_rows() const;  // over all layers, the measure of cost
  std::uint64_t bytes() const;      // of the integers
};

enum class EdgeDirection { consumer_to_producer, producer_to_consumer };
enum class Aggregation { mean, sum };

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
};

// The reference: one row for each (node, configuration), [node, K] with the configurations as
// lanes. With several slates of unequal K the matrices are written out per row (lanes = 1). Row
// order: slate, node, configuration. Pure, thread-safe.
Plan build_dense_plan(std::span<const PlanSlate> slates, const PlanShape& shape);

// Rows that build_dense_plan would give, without building it: the known cost of a unit.
std::int64_t dense_plan_rows(std::span<const PlanSlate> slates, const PlanShape& shape);

// Throws Error when a plan breaks an invariant (sizes, sorted sources, exact transposes, ranges):
// for tests and debug runs.
void check_plan(const Plan& plan);

}  // namespace tpudist
