#include "models/layers/fused_sage.hpp"

#include <algorithm>
#include <utility>

#include "core/aligned.hpp"

namespace tpudist {

FusedSage::FusedSage(const SageConfig& config, std::int64_t in, int step, const std::string& prefix,
                     const ParameterTable& table, bool after_relu)
    : in_(in),
      out_(config.width),
      in_stride_(pad16(in)),
      out_stride_(pad16(config.width)),
      step_(static_cast<std::size_t>(step)),
      residual_(config.residual && in == config.width),
      relu_(config.activation == Activation::relu),
      max_(config.mix.aggregation == Aggregation::max),
      after_relu_(after_relu) {
  const auto edge_sets = static_cast<std::int64_t>(config.mix.edge_kinds.size());
  self_column_ = edge_sets * in_stride_;
  input_stride_ = self_column_ + in_stride_;
  const auto offset = [&](const std::string& name) { return table.find(prefix + name).offset; };
  bias_ = offset(edge_sets ? "neighbours.bias" : "self.bias");
  begin_ = bias_;
  end_ = bias_ + out_stride_;
  for (std::int64_t set = 0; set <= edge_sets; ++set) {
    const std::string name = set == edge_sets ? "self"
                             : set == 0       ? "neighbours"
                                              : "neighbours_" + std::to_string(set);
    const std::int64_t weight = offset(name + ".weight"), size = in * out_;
    weight_.push_back(weight);
    begin_ = std::min(begin_, weight);
    end_ = std::max(end_, weight + pad16(size));
    const bool joins = !parts_.empty() && in == in_stride_ &&
                       weight == parts_.back().offset + parts_.back().width * out_;
    if (joins) {
      parts_.back().width += in;
    } else {
      parts_.push_back({set * in_stride_, in, weight});
    }
  }
}

void FusedSage::sum_neighbours(const FusedCall& call, std::size_t set, const MemberRows& x,
                               int member, std::int64_t first, std::int64_t count,
                               Rows sums) const {
  const SparseMatrix& matrix = layer_of(call).edges[set].aggregate;
  if (max_) {
    spmm_max_rows(matrix.forward, first, count, x.of(member), in_, sums, matrix.replicas);
  } else {
    spmm_rows(matrix.forward, first, count, x.of(member), in_, sums, {.replicas = matrix.replicas});
  }
}

// The transpose of sum_neighbours, for a block of the rows before the layer that begins at x[0].
// Adds the contributions of the neighbourhoods' gradients to options.base. For maxima `best`, the
// gradient is the output of spmm_max_shares.
void FusedSage::spread_to_neighbours(const FusedCall& call, std::size_t set, ConstRows x,
                                     std::int64_t first, std::int64_t count, ConstRows best,
                                     ConstRows gradient, Rows d_x,
                                     const SpmmOptions& options) const {
  const Csr& out = layer_of(call).edges[set].aggregate.transposed;
  if (max_) {
    spmm_max_backward_rows(out, first, count, x, best, gradient, in_, d_x, options);
  } else {
    spmm_rows(out, first, count, gradient, in_, d_x, options);
  }
}

void FusedSage::forward(const FusedCall& call, MemberSet members, const MemberRows& x,
                        MemberRows& y, Kept& kept) const {
  if (call.plan.is_refined()) {
    forward_refined(call, members, x, y, kept);
  } else {
    forward_dense(call, members, x, y);
  }
}

MemberRows FusedSage::backward(const FusedCall& call, MemberSet members, const MemberRows& x,
                               const Kept& kept, MemberRows d_y, MemberGradients gradients) const {
  if (call.plan.is_refined())
    return backward_refined(call, members, x, kept, std::move(d_y), gradients);
  return backward_dense(call, members, x, std::move(d_y), gradients);
}

}  // namespace tpudist
