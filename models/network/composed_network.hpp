#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/inputs/encoder.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/layers/layer.hpp"
#include "models/network/network_config.hpp"
#include "models/parameters/parameter_table.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// What a composed network needs of a unit besides its weights. Made once for all members.
struct PreparedUnit {
  UnitTensors tensors;
  PlanContext context;
};

// A network of layers over plan operators, which LibTorch's autograd differentiates. On the CPU, in
// float32 or in double: the dtype of the weights. Immutable, thread-safe.
class ComposedNetwork {
 public:
  // `config_features`: kLayoutConfigFeatures or kTileConfigFeatures. Throws ConfigError where the head
  // takes states of configurations and the collection has states of nodes.
  ComposedNetwork(const NetworkConfig& config, std::int64_t config_features);

  const ParameterTable& parameters() const { return table_; }

  std::shared_ptr<const PreparedUnit> prepare(const UnitInput& input, at::ScalarType dtype) const;
  // The weights of one member of a flat buffer [P] as views of it, float32, which take gradients
  // where `trained`. The buffer must outlive them.
  LayerWeights views(const float* member, bool trained) const;

  // The scores [configurations, M] in double. `unit` is what prepare() made of the input with the
  // weights' dtype. `dropout_keys` [M], or empty: nothing is dropped.
  at::Tensor scores(const UnitInput& input, const PreparedUnit& unit, const LayerWeights& weights,
                    ThreadPool& pool, std::span<const std::uint64_t> dropout_keys = {}) const;

 private:
  at::Tensor head(const at::Tensor& pooled, const Readout& readout, const LayerWeights& weights,
                  ThreadPool& pool) const;
  at::Tensor config_branch(const UnitTensors& unit, const at::Tensor& states,
                           const LayerWeights& weights, ThreadPool& pool) const;
  void add_mlp(const std::string& name, std::int64_t in, const std::vector<std::int64_t>& widths,
               ParameterGroup group);

  NetworkConfig config_;
  PlanShape shape_;
  Encoder encoder_;
  std::vector<std::shared_ptr<const Layer>> blocks_;
  std::vector<Aggregation> pools_;
  bool drops_ = false;
  ParameterTable table_;
};

}  // namespace tpudist
