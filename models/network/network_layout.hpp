#pragma once

#include <cstdint>
#include <vector>

#include "models/network/network_config.hpp"
#include "models/parameters/parameter_table.hpp"

namespace tpudist {

// A weight [width, out]. It multiplies `width` columns of a layer's input, starting at `column`.
struct WeightPart {
  std::int64_t column = 0;
  std::int64_t width = 0;
  std::int64_t offset = 0;  // in a member's flat parameters
};

// One SAGE layer (Hamilton et al., "Inductive representation learning on large graphs", 2017). Its
// input is the row [aggregated neighbours of each edge set | own state]. It computes out =
// act(input W + b). Where the layer is residual, the own state is added before the activation, as
// in the 2nd place's code. Widths and strides are in floats.
struct LayerLayout {
  std::int64_t in = 0, out = 0;                // channels before and after the layer
  std::int64_t in_stride = 0, out_stride = 0;  // these, rounded up to 16 floats
  std::int64_t input_stride = 0;               // of the layer's input: (edge sets + 1) * in_stride
  std::int64_t self_column = 0;     // where the own state begins in the input: edge sets *
                                    // in_stride
  std::vector<WeightPart> weights;  // [edge sets + 1] one for each edge set, then that of the own
                                    // state
  // The same, where adjacent weights are joined into one part.
  std::vector<WeightPart> parts;
  std::int64_t bias = 0;            // offset in the flat parameters
  std::int64_t begin = 0, end = 0;  // the layer's range of the flat parameters
  bool residual = false, relu = true;
  bool max = false;  // takes the largest value of each channel over the neighbours, not a weighted
                     // sum
};

// Where each parameter of a network lies in a member's flat parameters, how wide the network's
// states are, and in what precision its products are computed. Names that end in _weight, _bias and
// _config are offsets in the flat parameters. [opcode | node | config] are the columns of the
// encoder's join. Immutable once it is made.
struct NetworkLayout {
  // `config_features`: kLayoutConfigFeatures or kTileConfigFeatures.
  NetworkLayout(const NetworkConfig& config, int config_features);

  ParameterTable table;
  Precision precision;
  std::int64_t opcode_width, node_width, width, config_features;
  std::int64_t node_stride;  // floats per row of [opcode | node]: its width, rounded up to 16
  std::int64_t stride;       // the same for the encoder's output
  std::int64_t opcode_weight, node_weight, node_bias, join_weight, join_config, join_bias;
  std::int64_t encoder_end;  // where the encoder's parameters end and those of the first layer
                             // begin
  std::vector<LayerLayout> layers;
  std::int64_t head_weight, head_bias, head_end;
};

// Returns how many floats the states of one member on a plan have: before, between and after the
// layers.
std::int64_t state_floats(const NetworkLayout& layout, const Plan& plan);

}  // namespace tpudist
