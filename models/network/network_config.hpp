#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "models/plans/plan_cost.hpp"
#include "models/plans/plan_shape.hpp"
#include "models/kernels/precision.hpp"

namespace tpudist {

enum class Activation { none, relu };

// One message-passing layer: SAGE with separate weights for the neighbours and the node itself.
struct SageConfig {
  std::int64_t width = 64;  // output channels
  LayerShape mix;           // directions and aggregation
  bool residual = false;    // add the input where widths agree
  Activation activation = Activation::relu;
};

struct EncoderConfig {
  std::int64_t opcode_width = 12;  // columns of the opcode embedding
  std::int64_t node_width = 20;    // Linear over the kNodeFeatures columns of a node
  std::int64_t width = 32;         // Linear over [opcode | node | config] -> ReLU
};

// A network as composed from YAML. `preset` names: latenciaga_xla, latenciaga_nlp, latenciaga_tile
// (the 2nd place of "Fast or Slow?").
struct NetworkConfig {
  EncoderConfig encoder;
  std::vector<SageConfig> layers;
  bool mean_readout = false;   // sum otherwise
  double output_scale = 1e-3;  // scores = scale * readout
  // Operands of the products with the weights, except those of embedding and head. An experiment's
  // `precision`, not read from `model:`.
  Precision precision = Precision::fp32;

  // Reads `model:`: {preset: name} and/or encoder, blocks, readout spelled out (a key beside a
  // preset overrides it).
  static NetworkConfig read(ConfigNode model);
  static NetworkConfig preset(const std::string& name);  // throws ConfigError for an unknown name
  PlanShape plan_shape() const;
  // `config_features`: kLayoutConfigFeatures or kTileConfigFeatures.
  NetworkWidths widths(std::int64_t config_features) const;
};

}  // namespace tpudist
