#pragma once

#include <cstdint>
#include <vector>

#include "models/network_config.hpp"
#include "models/parameter_table.hpp"

namespace tpudist {

// A weight [width, out] that multiplies `width` columns of a layer's input, from `column` on.
struct WeightPart {
  std::int64_t column = 0;
  std::int64_t width = 0;
  std::int64_t offset = 0;  // in a member's flat parameters
};

// One SAGE layer: out = act([what is aggregated of the neighbours, for each edge set | own state] W
// + b (+ own state)), the activation last of all as in the 2nd place's code.
struct LayerLayout {
  std::int64_t in = 0, out = 0;
  std::int64_t in_stride = 0, out_stride = 0;  // rounded up to 16 floats
  std::int64_t input_stride = 0;               // (edge sets + 1) * in_stride
  std::int64_t self_column = 0;                // edge sets * in_stride
  std::vector<WeightPart> parts;    // neighbouring weights on neighbouring columns are one part
  std::vector<WeightPart> weights;  // as named: edge sets in order, then self
  std::int64_t bias = 0;
  std::int64_t begin = 0, end = 0;  // the layer's range of the flat parameters
  bool residual = false, relu = true;
  bool max = false;  // the neighbours' largest value of each channel; otherwise a weighted sum
};

// Where everything of a network lies in a member's flat parameters, and what its products round to.
// `[opcode | node | config]` are the columns of the encoder's join.
struct NetworkLayout {
  NetworkLayout(const NetworkConfig& config, int config_features);

  ParameterTable table;
  Precision precision;
  std::int64_t opcode_width, node_width, width, config_features;
  std::int64_t node_stride;  // of [opcode | node], rounded up to 16 floats
  std::int64_t stride;       // of the encoder's output
  std::int64_t opcode_weight, node_weight, node_bias, join_weight, join_config, join_bias,
      encoder_end;
  std::vector<LayerLayout> layers;
  std::int64_t head_weight, head_bias, head_end;
};

// One member's states on a plan before and behind all layers, in floats.
std::int64_t state_floats(const NetworkLayout& layout, const Plan& plan);

}  // namespace tpudist
