#pragma once

#include <cstdint>
#include <string>

#include "data/synth/program.hpp"

namespace tpudist::synth {

// The kind of a model's blocks.
enum class Kind : std::uint8_t { convolution, attention, recurrent, mixture, embedding };

// One training program to make. Members of a family share kind and key, which decide widths and the
// order of operations in a block. They differ in batch, depth and type, like the variants of a
// model in TpuGraphs.
struct ModelSpec {
  std::string name;
  Kind kind = Kind::convolution;
  std::uint64_t family = 1;  // key of the family's draws
  Dtype type = Dtype::bf16;
  std::int64_t batch = 32;
  std::int64_t nodes = 1000;      // exact size of the program; at least 48
  double body_share = 0.5;        // share of forward and backward passes; the rest is the optimizer
  std::int64_t edges = 0;         // exact number if > 0, otherwise about 1.65 per node
  std::int64_t config_nodes = 0;  // exact number if > 0
};

// The program: forward pass of repeated blocks, backward pass in reverse order that reuses the
// activations (long skips), one chain of optimizer operations per weight, and the root tuple. Has
// exactly spec.nodes nodes. Throws ConfigError if `nodes`, `edges` or `config_nodes` cannot be
// reached. A pure function of the specification.
Program build_model(const ModelSpec& spec);

}  // namespace tpudist::synth
