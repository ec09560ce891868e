#include "models/inputs/graph_input.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace tpudist {
namespace {

void require_length(std::size_t found, std::int64_t nodes, std::int64_t width) {
  if (static_cast<std::int64_t>(found) == nodes * width) return;
  throw DataError("a graph of " + std::to_string(nodes) + " nodes needs " +
                  std::to_string(nodes * width) + " node features, not " + std::to_string(found));
}

std::vector<std::int32_t> checked_opcodes(std::span<const std::uint8_t> opcodes) {
  std::vector<std::int32_t> checked;
  checked.reserve(opcodes.size());
  for (const std::uint8_t opcode : opcodes) {
    if (opcode >= kOpcodes) {
      throw DataError("opcode " + std::to_string(opcode) + " of node " +
                      std::to_string(checked.size()) + " is not below " + std::to_string(kOpcodes));
    }
    checked.push_back(opcode);
  }
  return checked;
}

Array<float> feature_rows_of(std::span<const float> node_features, std::int64_t nodes) {
  constexpr std::int64_t stride = GraphInput::stride;
  const auto rows = std::make_shared<AlignedFloats>(static_cast<std::size_t>(nodes * stride), 0.0f);
  for (std::int64_t node = 0; node < nodes; ++node) {
    for (std::int64_t c = 0; c < kNodeFeatures; ++c) {
      const double x = node_features[node * kNodeFeatures + c];
      (*rows)[node * stride + c] = static_cast<float>(std::copysign(std::log1p(std::abs(x)), x));
    }
  }
  return {std::span<const float>(*rows), rows};
}

}  // namespace

GraphArrays GraphArrays::of(std::span<const float> node_features,
                            std::span<const std::uint8_t> opcodes, FeatureForms forms) {
  const auto nodes = static_cast<std::int64_t>(opcodes.size());
  require_length(node_features.size(), nodes, kNodeFeatures);
  GraphArrays arrays;
  arrays.opcode = checked_opcodes(opcodes);
  if (forms != FeatureForms::rows)
    arrays.raw = std::vector<float>(node_features.begin(), node_features.end());
  if (forms != FeatureForms::raw) arrays.rows = feature_rows_of(node_features, nodes);
  return arrays;
}

GraphInput::GraphInput(std::span<const float> node_features, std::span<const std::uint8_t> opcodes)
    : GraphInput(GraphArrays::of(node_features, opcodes, FeatureForms::both)) {}

GraphInput::GraphInput(const GraphArrays& arrays)
    : rows_(arrays.rows), raw_(arrays.raw), opcode_(arrays.opcode) {
  if (!rows_.empty()) require_length(rows_.size(), nodes(), stride);
  if (!raw_.empty()) require_length(raw_.size(), nodes(), kNodeFeatures);
}

std::uint64_t GraphInput::bytes(std::int64_t nodes, FeatureForms forms) {
  const std::size_t rows = forms == FeatureForms::raw ? 0 : stride;
  const std::size_t raw = forms == FeatureForms::rows ? 0 : kNodeFeatures;
  return static_cast<std::uint64_t>(nodes) * (sizeof(float) * (rows + raw) + sizeof(std::int32_t));
}

void GraphInput::refuse_form() {
  throw Error(ErrorKind::failed,
              "a graph's inputs were prepared for a network of another kind and lack its features");
}

}  // namespace tpudist
