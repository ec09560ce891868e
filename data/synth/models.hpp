#pragma once

#include <cstdint>
#include <string>

#include "data/synth/program.hpp"

namespace tpudist::synth {

// The kind of blocks of a model.
enum class Style { plain_conv, residual_conv, branched_conv, volume_conv, transformer, recurrent };

// One training program to make. Members of a family share style, width and the order of blocks, and
// differ in batch, depth and type, as the variants of a model in TpuGraphs do.
struct ModelSpec {
  std::string name;
  Style style = Style::residual_conv;
  Dtype type = Dtype::bf16;
  std::int64_t batch = 32;
  std::int64_t width = 64;  // channels of the first block, or hidden size
  std::int64_t image = 56;  // side of the first feature map
  std::int64_t sequence = 128;
  std::int64_t nodes = 1000;      // exact size of the program; at least 30
  double body_share = 0.5;        // share of forward and backward passes; the rest is the optimizer
  std::int64_t edges = 0;         // exact number if > 0, otherwise about 1.65 per node
  std::int64_t config_nodes = 0;  // exact number if > 0
};

// The program: forward pass of repeated blocks, backward pass in reverse order that reuses the
// activations (long skips), one chain of optimizer operations per weight, and the root tuple. Has
// exactly spec.nodes nodes; throws ConfigError when `edges` or `config_nodes` cannot be reached. A
// pure function of the specification.
Program build_model(const ModelSpec& spec);

}  // namespace tpudist::synth
