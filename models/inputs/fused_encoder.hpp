#pragma once

#include <cstdint>
#include <vector>

#include "core/parameters/parameter_table.hpp"
#include "models/inputs/encoder_config.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/operators/fused_call.hpp"

namespace tpudist {

// A plain encoder (EncoderConfig::is_plain) as one operator of the CPU. The Linear of the join is
// applied to nodes and to states separately, once to each node and once to each state. A row is the
// ReLU of the sum of the two. Immutable, thread-safe.
class FusedEncoder {
 public:
  // Consecutive rows of node inputs that belong to one graph.
  struct NodeBlock {
    const float* features;
    const std::int32_t* opcode;
    std::int64_t first, count;
  };
  // What the backward pass needs besides the unit.
  struct Kept {
    std::vector<NodeBlock> blocks;
    MemberRows node_input;  // [opcode | node]
  };

  FusedEncoder(const EncoderConfig& config, const FeatureSchema& schema,
               const ParameterTable& table);

  std::int64_t channels() const { return width_; }

  // Returns the rows before the first layer of all members: all or the needed ones.
  MemberRows forward(const FusedCall& call, int members, bool needed, const UnitInput& input,
                     Kept& kept) const;
  // Writes the gradients of the encoder's parameters. `d_x` is the gradient of the encoder's rows
  // before their ReLU; it holds only the members of the set.
  void backward(const FusedCall& call, MemberSet members, const UnitInput& input, const Kept& kept,
                const MemberRows& d_x, MemberGradients gradients) const;

 private:
  void encode_nodes(const FusedCall& call, const Kept& kept, int member, const NodeBlock& block,
                    Rows nodes) const;
  void backward_nodes(const FusedCall& call, const Kept& kept, int member, const NodeBlock& block,
                      Rows d_x, std::int64_t rows, float* partial) const;
  void backward_states(const FusedCall& call, const UnitInput& input, std::int64_t first,
                       std::int64_t count, Rows d_x, std::int64_t rows, float* partial) const;

  std::int64_t opcode_width_, node_width_, width_, node_features_, features_;
  std::int64_t node_stride_, stride_;  // of [opcode | node] and of the rows
  std::int64_t opcode_, node_, node_bias_, join_, join_config_, join_bias_;  // offsets
  std::int64_t end_;  // end of the encoder's range of the parameters, which begins at 0
};

}  // namespace tpudist
