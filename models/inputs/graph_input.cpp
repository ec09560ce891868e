#include "models/inputs/graph_input.hpp"

#include <cmath>
#include <string>

#include "core/error.hpp"

namespace tpudist {

GraphInput::GraphInput(std::span<const float> node_features,
                       std::span<const std::uint8_t> opcodes) {
  const std::int64_t nodes = opcodes.size();
  if (static_cast<std::int64_t>(node_features.size()) != nodes * kNodeFeatures) {
    throw DataError("a graph of " + std::to_string(nodes) + " nodes needs " +
                    std::to_string(nodes * kNodeFeatures) + " node features, not " +
                    std::to_string(node_features.size()));
  }
  raw_.assign(node_features.begin(), node_features.end());
  opcode_.reserve(nodes);
  for (const std::uint8_t opcode : opcodes) {
    if (opcode >= kOpcodes) {
      throw DataError("opcode " + std::to_string(opcode) + " of node " +
                      std::to_string(opcode_.size()) + " is not below " + std::to_string(kOpcodes));
    }
    opcode_.push_back(opcode);
  }
  features_.assign(nodes * stride, 0.0f);
  for (std::int64_t node = 0; node < nodes; ++node) {
    for (std::int64_t c = 0; c < kNodeFeatures; ++c) {
      const double x = node_features[node * kNodeFeatures + c];
      features_[node * stride + c] = static_cast<float>(std::copysign(std::log1p(std::abs(x)), x));
    }
  }
}

}  // namespace tpudist
