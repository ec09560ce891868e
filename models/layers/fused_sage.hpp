#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/parameters/parameter_table.hpp"
#include "models/layers/layer_config.hpp"
#include "models/operators/fused_call.hpp"

namespace tpudist {

// A plain SAGE layer (SageConfig::is_plain) as one operator of the CPU, with a handwritten backward
// pass. A row of its output is
//
//     y = act(sum over edge sets of (aggregated neighbours) W_set + x W_self + b [+ x])
//
// On dense plans each block of rows is aggregated and multiplied in one step. The backward pass
// aggregates again, because that costs less than to keep the result. It sums weight gradients
// within fixed chunks of rows, and adds the chunks in order. On refined plans each neighbourhood,
// and each row that is the own one of a row after the layer, is multiplied by its weights once. A
// row after the layer adds up the products that it takes. There a tile of a weight gradient is one
// product over all rows.
// Immutable, thread-safe.
class FusedSage {
 public:
  // What the backward pass needs besides the rows before the layer: on refined plans the aggregated
  // neighbourhoods of each edge set; on dense plans nothing.
  using Kept = std::vector<MemberRows>;

  // `step`: the number of its plan layer. `after_relu`: whether the rows before it are the output
  // of a ReLU; then backward() differentiates that ReLU too.
  FusedSage(const SageConfig& config, std::int64_t in, int step, const std::string& prefix,
            const ParameterTable& table, bool after_relu);

  std::int64_t channels() const { return out_; }
  bool has_relu() const { return relu_; }

  // Computes the rows of y for the members of the set, and what to keep for the backward pass. x, y
  // and `kept` hold the rows of all members.
  void forward(const FusedCall& call, MemberSet members, const MemberRows& x, MemberRows& y,
               Kept& kept) const;
  // Makes `kept` only.
  void keep(const FusedCall& call, MemberSet members, const MemberRows& x, Kept& kept) const;
  // Writes the gradients of the layer's parameters. Returns the gradient of x, with `after_relu`
  // before the ReLU that made x. `d_y` is the gradient of the layer's output before its activation.
  // `d_y` and the result hold only the members of the set; the buffer of `d_y` is released as soon
  // as it is no longer needed.
  MemberRows backward(const FusedCall& call, MemberSet members, const MemberRows& x,
                      const Kept& kept, MemberRows d_y, MemberGradients gradients) const;

 private:
  // A weight [width, out] for input rows [edge sets | self] of a block of a dense plan. It
  // multiplies `width` columns of the input, starting at `column`.
  struct Part {
    std::int64_t column, width, offset;
  };

  void forward_dense(const FusedCall& call, MemberSet members, const MemberRows& x,
                     MemberRows& y) const;
  void forward_refined(const FusedCall& call, MemberSet members, const MemberRows& x, MemberRows& y,
                       Kept& kept) const;
  MemberRows backward_dense(const FusedCall& call, MemberSet members, const MemberRows& x,
                            MemberRows d_y, MemberGradients gradients) const;
  MemberRows backward_refined(const FusedCall& call, MemberSet members, const MemberRows& x,
                              const Kept& kept, MemberRows d_y, MemberGradients gradients) const;

  struct DenseGradient;
  void backward_block(const FusedCall& call, const MemberRows& x, DenseGradient& gradient,
                      int member, int place, std::int64_t first, std::int64_t count, bool fresh,
                      float* partial) const;
  void gather_dense(const FusedCall& call, const MemberRows& x, const DenseGradient& gradient,
                    int member, int place, std::int64_t first, std::int64_t count, Rows d_x) const;

  void take_sums(const FusedCall& call, int count, bool needed, Kept& kept) const;
  void sum_neighbours(const FusedCall& call, std::size_t set, const MemberRows& x, int member,
                      std::int64_t first, std::int64_t count, Rows sums) const;
  void spread_to_neighbours(const FusedCall& call, std::size_t set, ConstRows x, std::int64_t first,
                            std::int64_t count, ConstRows best, ConstRows gradient, Rows d_x,
                            const SpmmOptions& options) const;
  void fill_input(const FusedCall& call, const MemberRows& x, int member, std::int64_t first,
                  std::int64_t count, float* block) const;

  const PlanLayer& layer_of(const FusedCall& call) const { return *call.plan.layers[step_]; }
  std::size_t sets() const { return weight_.size() - 1; }
  std::int64_t neighbourhoods(const FusedCall& call, std::size_t set, bool needed) const {
    return needed ? call.plan.needed_counts[step_].neighbourhoods[set]
                  : layer_of(call).edges[set].aggregate.forward.rows();
  }

  std::int64_t in_, out_, in_stride_, out_stride_;  // channels, and those rounded up to 16
  std::int64_t input_stride_, self_column_;         // of [edge sets | self], see Part
  std::size_t step_;
  bool residual_, relu_, max_, after_relu_;
  std::vector<std::int64_t> weight_;  // [edge sets + 1] offsets in the parameters, self last
  std::vector<Part> parts_;           // weights that lie side by side are one
  std::int64_t bias_, begin_, end_;   // the bias' offset, and the layer's range of the parameters
};

}  // namespace tpudist
