#include <algorithm>
#include <utility>

#include "models/kernels/cpu_blocks.hpp"
#include "models/kernels/gemm.hpp"
#include "models/layers/fused_sage.hpp"

// SAGE layers of dense plans, where a row after the layer has the same number as its own row before
// it.

namespace tpudist {

// The layer's input [edge sets | self] for a block of its output rows.
void FusedSage::fill_input(const FusedCall& call, const MemberRows& x, int member,
                           std::int64_t first, std::int64_t count, float* block) const {
  for (std::size_t set = 0; set < sets(); ++set) {
    const auto column = static_cast<std::int64_t>(set) * in_stride_;
    sum_neighbours(call, set, x, member, first, count, {block + column, input_stride_});
  }
  copy_rows({x.of(member).row(first), x.stride}, count, in_, {block + self_column_, input_stride_});
}

void FusedSage::forward_dense(const FusedCall& call, MemberSet members, const MemberRows& x,
                              MemberRows& y) const {
  for_blocks(call.pool, members, y.rows, [&](int member, std::int64_t first, std::int64_t count) {
    const float* const w = call.weights(member);
    float* const block = block_scratch(0, kBlockRows * input_stride_);
    fill_input(call, x, member, first, count, block);
    const Rows out{y.of(member).row(first), out_stride_};
    for (const Part& part : parts_) {
      gemm(call.precision, count, out_, part.width, {block + part.column, input_stride_},
           {w + part.offset, out_}, &part == &parts_[0] ? 0 : 1, out.data, out.stride);
    }
    const ConstRows self{block + self_column_, input_stride_};
    bias_relu_rows(out, count, out_, w + bias_, residual_ ? self : ConstRows{}, relu_);
  });
}

// The gradient of the layer's input [edge sets | self], and where the layer takes maxima, the
// maxima.
struct FusedSage::DenseGradient {
  MemberRows d_y, d_input, maxima;
};

void FusedSage::backward_block(const FusedCall& call, const MemberRows& x, DenseGradient& gradient,
                               int member, int place, std::int64_t first, std::int64_t count,
                               bool fresh, float* partial) const {
  const float* const w = call.weights(member);
  const auto place_of = [&](std::int64_t offset) { return partial + (offset - begin_); };
  const ConstRows z{gradient.d_y.of(place).row(first), out_stride_};
  add_column_sums(z, count, out_, place_of(bias_));

  float* const input = block_scratch(0, kBlockRows * input_stride_);
  fill_input(call, x, member, first, count, input);
  const Rows d_input{gradient.d_input.of(place).row(first), input_stride_};
  for (const Part& part : parts_) {
    gemm(call.precision, part.width, out_, count,
         {input + part.column, input_stride_, Transpose::yes}, {z.data, z.stride}, fresh ? 0 : 1,
         place_of(part.offset), out_);
    gemm(call.precision, count, part.width, out_, {z.data, z.stride},
         {w + part.offset, out_, Transpose::yes}, 0, d_input.data + part.column, d_input.stride);
  }
  if (residual_) add_rows(z, count, in_, {d_input.data + self_column_, d_input.stride});
  if (!max_) return;
  copy_rows({input, input_stride_}, count, self_column_,
            {gradient.maxima.of(place).row(first), self_column_});
  for (std::size_t set = 0; set < sets(); ++set) {
    const SparseMatrix& edges = layer_of(call).edges[set].aggregate;
    const auto column = static_cast<std::int64_t>(set) * in_stride_;
    spmm_max_shares(edges.forward, first, count, x.of(member), {input + column, input_stride_}, in_,
                    {d_input.data + column, d_input.stride}, edges.replicas);
  }
}

// The gradient of a block of x from the gradient of the layer's input, with as many rows as y.
void FusedSage::gather_dense(const FusedCall& call, const MemberRows& x,
                             const DenseGradient& gradient, int member, int place,
                             std::int64_t first, std::int64_t count, Rows d_x) const {
  const std::int64_t taken = std::clamp<std::int64_t>(gradient.d_input.rows - first, 0, count);
  if (taken > 0 && taken < count) {  // no row of y takes the rest as its own state
    gather_dense(call, x, gradient, member, place, first, taken, d_x);
    gather_dense(call, x, gradient, member, place, first + taken, count - taken,
                 {d_x.row(taken), d_x.stride});
    return;
  }
  const ConstRows block{x.of(member).row(first), x.stride},
      mask = after_relu_ ? block : ConstRows{};
  const ConstRows d_input = gradient.d_input.of(place);
  ConstRows sum;  // so far; the last step applies the mask
  if (taken > 0) sum = {d_input.row(first) + self_column_, d_input.stride};
  if (sets() == 0) {
    if (taken > 0) {
      copy_rows(sum, count, in_, d_x);
    } else {
      for (std::int64_t i = 0; i < count; ++i) std::fill_n(d_x.row(i), in_, 0.0f);
    }
    if (mask.data) relu_backward_rows(d_x, count, in_, mask);
  }
  for (std::size_t set = 0; set < sets(); ++set) {
    const auto column = static_cast<std::int64_t>(set) * in_stride_;
    const std::int64_t replicas = layer_of(call).edges[set].aggregate.replicas;
    ConstRows best;
    if (max_) best = {gradient.maxima.of(place).data + column, self_column_};
    spread_to_neighbours(call, set, block, first, count, best,
                         {d_input.data + column, d_input.stride}, d_x,
                         {.replicas = replicas,
                          .sources = gradient.d_input.rows / replicas,
                          .base = sum,
                          .mask = set + 1 == sets() ? mask : ConstRows{}});
    sum = d_x;
  }
}

MemberRows FusedSage::backward_dense(const FusedCall& call, MemberSet members, const MemberRows& x,
                                     MemberRows d_y, MemberGradients gradients) const {
  const std::int64_t rows = d_y.rows, blocks = block_count(rows), chunks = chunk_count(blocks),
                     size = chunk_blocks(blocks);
  DenseGradient gradient{std::move(d_y), call.take(rows, input_stride_, members.count), {}};
  if (max_) gradient.maxima = call.take(rows, self_column_, members.count);
  const Partials partials(call, members.count, chunks, begin_, end_);
  call.pool.parallel_for(members.count * chunks, [&](std::int64_t i) {
    const int place = static_cast<int>(i / chunks);
    const std::int64_t chunk = i % chunks, end = std::min(blocks, (chunk + 1) * size);
    float* const partial = partials.of(place, chunk);
    std::fill_n(partial + (bias_ - begin_), out_, 0.0f);  // the first block writes the weights
    for (std::int64_t block = chunk * size; block < end; ++block) {
      const std::int64_t first = block * kBlockRows;
      backward_block(call, x, gradient, members.first + place, place, first,
                     std::min(kBlockRows, rows - first), block == chunk * size, partial);
    }
  });
  gradient.d_y = {};
  const std::int64_t rows_in[] = {call.rows(step_, members.needed)};
  MemberRows d_x = call.take(rows_in[0], in_stride_, members.count);
  const auto gather = [&](int member, std::size_t, std::int64_t first, std::int64_t count) {
    const int place = member - members.first;
    gather_dense(call, x, gradient, member, place, first, count,
                 {d_x.of(place).row(first), d_x.stride});
  };
  for_ranges(call.pool, members, rows_in, gather, partials.pieces(),
             [&](int member, std::int64_t piece) {
               partials.add_up(member - members.first, piece, gradients[member]);
             });
  return d_x;
}

}  // namespace tpudist
