#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/array.hpp"
#include "data/schema/feature_schema.hpp"
#include "models/inputs/encoder_config.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/layers/layer.hpp"
#include "models/plans/join_plans.hpp"

// For .cpp files in models/ only: it includes ATen.

namespace tpudist {

// The node features of a graph after the encoder's transform, which depends on no weight, in one
// dtype. The graph keeps them for all units and members (GraphInput::encoded). A member's own
// statistics are applied later. Immutable.
struct EncodedGraph {
  std::uint64_t key;  // Encoder::encoded_key of the one that made it
  // [nodes, F + E]: the F columns used, transformed, then the E dimension features and return
  // probabilities.
  at::Tensor features;
  // [nodes * code columns] rows of the code embedding; empty without one.
  Array<std::int32_t> codes;
};

// The inputs of a unit as tensors, in one dtype. Made once for all members; they do not depend on
// weights.
struct UnitTensors {
  std::shared_ptr<const JoinedUnits> units;  // of a joined plan, otherwise null
  at::Tensor none_states;              // [units] int64, their rows of state_features for nodes
                                       // without a state; undefined if they have one row, the last
  at::Tensor node_features;            // [nodes, F + E] as in EncodedGraph
  at::Tensor state_features;           // [states + 1, config features]; the last row is for nodes
                                       // without a state
  std::unique_ptr<StateIndex> opcode;  // of the input rows, into the opcode embedding
  std::unique_ptr<StateIndex> node_codes;       // [nodes * code columns], into the code embedding
  std::unique_ptr<StateIndex> state_codes;      // [(states + 1) * config features], likewise
  std::unique_ptr<StateIndex> state;            // of the plan's first rows
  std::unique_ptr<StateIndex> state_of_config;  // of configurations with a single state for all
                                                // nodes
  at::Tensor node_counts;  // [configurations] in double; undefined where the head takes none
  // [configurations, n] in double, further inputs of the head; likewise.
  at::Tensor graph_features;
};

// Computes the states of the rows before the first layer from opcodes, node features and
// configuration states of graphs of one schema. Immutable, thread-safe.
class Encoder {
 public:
  Encoder(const EncoderConfig& config, const FeatureSchema& schema);

  std::int64_t channels() const;        // of the rows before the first layer
  std::int64_t state_channels() const;  // of the states, for a late join
  bool embeds_states() const;           // whether states() depends on weights
  std::vector<ParameterEntry> parameters() const;
  void add_work(NetworkWork& network) const;

  // `dtype`: at::kFloat or at::kDouble. Both throw DataError for a value without a row in the code
  // embedding. `prepare` uses the graph's EncodedGraph if it was made with the same columns and
  // transform; the bits do not depend on it.
  std::shared_ptr<const EncodedGraph> encode(const GraphInput& graph, at::ScalarType dtype) const;
  UnitTensors prepare(const UnitInput& unit, at::ScalarType dtype) const;
  // Conversion of encode()'s float32 result to and from arrays. Tensors share the arrays and never
  // write to them.
  static void to_arrays(const std::shared_ptr<const EncodedGraph>& nodes, GraphArrays& arrays);
  // Throws DataError if the lengths do not match a graph of this encoder.
  std::shared_ptr<const EncodedGraph> of_arrays(const GraphArrays& arrays) const;
  // Hash of everything that determines the result of encode() for a given graph.
  std::uint64_t encoded_key() const;
  // The states [M, states + 1, S].
  at::Tensor states(const UnitTensors& unit, const LayerWeights& weights,
                    const Backend& backend) const;
  // The rows before the first layer; `states`: the result of states().
  RowStates rows(const UnitTensors& unit, const at::Tensor& states, const Plan& plan,
                 const LayerWeights& weights, const Backend& backend) const;

  // Size of an EncodedGraph of `nodes` nodes in float32.
  std::uint64_t encoded_bytes(std::int64_t nodes) const;

 private:
  std::shared_ptr<const EncodedGraph> encoded(const GraphInput& graph, at::ScalarType dtype) const;
  at::Tensor nodes(const UnitTensors& unit, const LayerWeights& weights,
                   const Backend& backend) const;
  std::int64_t node_columns() const;   // F
  std::int64_t added_columns() const;  // E
  std::int64_t node_channels() const;
  std::int64_t joined_channels() const;  // of [opcode | node | state]

  EncoderConfig config_;
  FeatureSchema schema_;
};

}  // namespace tpudist
