#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/aligned.hpp"

namespace tpudist {

// A graph's node inputs in the form the networks take: features sign(x) * log1p|x|, opcodes.
// Immutable, shared between threads.
class GraphInput {
 public:
  static constexpr std::int64_t features = 140;  // node features of TpuGraphs
  static constexpr std::int64_t stride = 144;    // floats from node to node, padding zero
  static constexpr std::int64_t opcodes = 120;   // size of the opcode table

  // `node_features` [nodes, 140] raw, `opcodes` [nodes]. Throws DataError when the lengths do not
  // fit or an opcode is not below 120.
  GraphInput(std::span<const float> node_features, std::span<const std::uint8_t> opcodes);

  std::int64_t nodes() const { return static_cast<std::int64_t>(opcode_.size()); }
  const float* feature_rows() const {
    return features_.data();
  }  // [nodes, stride], aligned to 64 bytes
  std::span<const std::int32_t> opcode() const { return opcode_; }

  // The executor's copy on its device, set once before the graph is shared; may be null.
  const std::shared_ptr<const void>& device() const { return device_; }
  void set_device(std::shared_ptr<const void> copy) { device_ = std::move(copy); }

 private:
  AlignedFloats features_;
  std::vector<std::int32_t> opcode_;
  std::shared_ptr<const void> device_;
};

}  // namespace tpudist
