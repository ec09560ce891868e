#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/inputs/encoder_config.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/layers/layer.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// The inputs of a unit as tensors, in one dtype. Made once for all members; they do not depend on
// weights.
struct UnitTensors {
  at::Tensor node_features;            // [nodes, F] the columns that the encoder takes, transformed
  at::Tensor state_features;           // [states + 1, config features]; the last row: no state
  std::unique_ptr<StateIndex> opcode;  // of the input rows, into the opcode embedding
  std::unique_ptr<StateIndex> node_codes;       // [nodes * code columns], into the code embedding
  std::unique_ptr<StateIndex> state_codes;      // [(states + 1) * config features], likewise
  std::unique_ptr<StateIndex> state;            // of the plan's first rows
  std::unique_ptr<StateIndex> state_of_config;  // of configurations that have one state each
};

// Turns opcodes, node features and configuration states into the states of the rows before the first
// layer. Immutable, thread-safe.
class Encoder {
 public:
  // `config_features`: kLayoutConfigFeatures or kTileConfigFeatures.
  Encoder(const EncoderConfig& config, std::int64_t config_features);

  std::int64_t channels() const;        // of the rows before the first layer
  std::int64_t state_channels() const;  // of the states, for a late join
  bool embeds_states() const;           // whether states() depends on weights
  std::vector<ParameterEntry> parameters() const;
  void add_work(NetworkWork& network) const;

  // `dtype`: at::kFloat or at::kDouble. Throws DataError for a value that the code embedding has no
  // row for.
  UnitTensors prepare(const UnitInput& unit, at::ScalarType dtype) const;
  // The states [states + 1, M, S].
  at::Tensor states(const UnitTensors& unit, const LayerWeights& weights, ThreadPool& pool) const;
  // The rows before the first layer; `states` is what states() returned.
  RowStates rows(const UnitTensors& unit, const at::Tensor& states, const Plan& plan,
                 const LayerWeights& weights, ThreadPool& pool) const;

 private:
  at::Tensor nodes(const UnitTensors& unit, const LayerWeights& weights, ThreadPool& pool) const;
  std::int64_t node_channels() const;

  EncoderConfig config_;
  std::int64_t config_features_;
};

}  // namespace tpudist
