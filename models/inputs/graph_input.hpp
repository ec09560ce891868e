#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/aligned.hpp"
#include "core/tpugraphs.hpp"

namespace tpudist {

struct DeviceGraph;
struct EncodedGraph;

// The node inputs of one graph in the form that networks take: features raw and as sign(x) *
// log1p|x|, and opcodes. Made once for each graph and shared between threads. Immutable once it is
// shared.
class GraphInput {
 public:
  static constexpr std::int64_t stride =
      144;  // floats from node to node: kNodeFeatures, then zeros

  // `node_features` [nodes, kNodeFeatures] raw, `opcodes` [nodes]. Throws DataError when the lengths
  // do not fit or an opcode is not below kOpcodes.
  GraphInput(std::span<const float> node_features, std::span<const std::uint8_t> opcodes);

  // What the arrays of a graph of so many nodes take, apart from copies for networks.
  static std::uint64_t bytes(std::int64_t nodes) {
    return static_cast<std::uint64_t>(nodes) *
           (sizeof(float) * (stride + kNodeFeatures) + sizeof(std::int32_t));
  }

  std::int64_t nodes() const { return static_cast<std::int64_t>(opcode_.size()); }
  // [nodes, stride], aligned to 64 bytes.
  const float* feature_rows() const { return features_.data(); }
  std::span<const std::int32_t> opcode() const { return opcode_; }
  // [nodes, kNodeFeatures] as they were given.
  std::span<const float> raw_features() const { return raw_; }

  // The executor's copy on its device, set once before the graph is shared. Null on the CPU.
  const std::shared_ptr<const DeviceGraph>& device() const { return device_; }
  void set_device(std::shared_ptr<const DeviceGraph> copy) { device_ = std::move(copy); }
  // What the encoder of a composed network makes of the nodes before any weight, set once before the
  // graph is shared. Null: every unit makes it anew.
  const std::shared_ptr<const EncodedGraph>& encoded() const { return encoded_; }
  void set_encoded(std::shared_ptr<const EncodedGraph> nodes) { encoded_ = std::move(nodes); }

 private:
  AlignedFloats features_;
  std::vector<float> raw_;
  std::vector<std::int32_t> opcode_;
  std::shared_ptr<const DeviceGraph> device_;
  std::shared_ptr<const EncodedGraph> encoded_;
};

}  // namespace tpudist
