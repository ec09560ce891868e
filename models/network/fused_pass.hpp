#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/aligned.hpp"
#include "core/buffer_cache.hpp"
#include "core/parameters/parameter_table.hpp"
#include "core/thread_pool.hpp"
#include "models/inputs/fused_encoder.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/layers/fused_sage.hpp"
#include "models/network/call_values.hpp"
#include "models/network/network_config.hpp"
#include "models/operators/fused_call.hpp"

namespace tpudist {

// The readout as one operator of the CPU. A Linear gives one number at each row after the last
// layer. These numbers are added up over the nodes of every configuration, times `scale`.
// Immutable, thread-safe.
class FusedReadout {
 public:
  // `in`: channels after the last layer. `after_relu`: as in FusedSage.
  FusedReadout(std::int64_t in, double scale, const ParameterTable& table, bool after_relu);

  // x: the rows after the last layer, of all members. `kept`: as UnitInput::kept, of the members from
  // `first_member` on.
  UnitScores forward(const FusedCall& call, const MemberRows& x, const KeptUse& kept,
                     int first_member) const;
  // Writes the gradients of weight and bias. Returns the gradient of x before the ReLU that made x,
  // for the members of the set. `score_gradient` [all members, configurations].
  MemberRows backward(const FusedCall& call, MemberSet members, const MemberRows& x,
                      std::span<const double> score_gradient, MemberGradients gradients) const;

 private:
  std::int64_t in_, weight_, bias_;
  double scale_;
  bool after_relu_;
};

// A network whose layers are all fused operators of the CPU: a plain encoder, a stack of plain SAGE
// layers, and a readout of one Linear. Immutable, thread-safe.
struct FusedNetwork {
  // `table`: the network's parameters.
  FusedNetwork(const NetworkConfig& config, const FeatureSchema& schema,
               const ParameterTable& table);

  // How many floats the states of one member on a plan have: before, between and after the layers.
  std::int64_t state_floats(const Plan& plan) const;

  FusedEncoder encoder;
  std::vector<FusedSage> layers;
  FusedReadout readout;
  Precision precision;
  std::int64_t parameters;  // of a member
  // [begin, end) of the gaps between the parameters of a member; gradients are zero there.
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;
};

// One call of some members: forward through the layers, and backward from the states kept between
// them. With `recompute` the states of only every other layer are kept; the others are computed
// again. Not thread-safe.
class FusedPass {
 public:
  // `use`: `differences` runs only the rows that the plan calls needed. Copies `flat` [members,
  // parameters] unless it lies on a 64-byte boundary. All other arguments are borrowed as long as
  // the pass lives.
  // `first_member`: among the members of input.kept.
  FusedPass(const FusedNetwork& network, std::span<const float> flat, const UnitInput& input,
            UnitUse use, bool recompute, ThreadPool& pool, BufferCache& buffers,
            int first_member = 0);

  UnitScores forward();
  // Call it once, after forward(). After a forward pass over all rows, the backward pass of members
  // whose loss ignores a shift of the scores runs only over the needed rows.
  void backward(const ScoreGradient& score_gradient, MemberGradients gradients);

 private:
  bool forward_needed() const { return use_ == UnitUse::differences; }
  bool keeps() const { return use_ != UnitUse::scores; }
  bool kept(std::size_t layer) const;
  std::int64_t channels(std::size_t depth) const {
    return depth == 0 ? network_.encoder.channels() : network_.layers[depth - 1].channels();
  }
  void forward_layer(std::size_t layer, MemberSet members);
  void take_kept(std::size_t depth);
  void run_again(std::size_t layer, MemberSet members);
  void backward_members(MemberSet members, const ScoreGradient& score_gradient,
                        MemberGradients gradients);
  void clear_padding(MemberGradients gradients) const;

  const FusedNetwork& network_;
  const UnitInput& input_;
  const UnitUse use_;
  const bool recompute_;
  const int first_member_;
  AlignedFloats aligned_;  // a copy of parameters that are not aligned
  const MemberSet all_;
  const FusedCall call_;
  FusedEncoder::Kept encoded_;
  std::vector<MemberRows> x_;          // states before layer 0 .. L
  std::vector<FusedSage::Kept> sums_;  // [layers]
};

}  // namespace tpudist
