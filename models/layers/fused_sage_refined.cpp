#include <algorithm>
#include <utility>

#include "models/kernels/cpu_blocks.hpp"
#include "models/kernels/gemm.hpp"
#include "models/layers/fused_sage.hpp"

// SAGE layers of refined plans. A row after the layer is a pair of its own row before the layer and
// a neighbourhood in each edge set. There are fewer of both than there are pairs, so each is
// multiplied by its weights once. Rows that are only neighbours' are not multiplied.

namespace tpudist {
namespace {

// Rows of a weight that make one task of its gradient.
constexpr std::int64_t kTileRows = 128;

}  // namespace

void FusedSage::take_sums(const FusedCall& call, int count, bool needed, Kept& kept) const {
  kept.clear();
  for (std::size_t set = 0; set < sets(); ++set)
    kept.push_back(call.take(neighbourhoods(call, set, needed), in_stride_, count));
}

void FusedSage::keep(const FusedCall& call, MemberSet members, const MemberRows& x,
                     Kept& kept) const {
  if (!call.plan.is_refined()) return;
  take_sums(call, x.members, members.needed, kept);
  std::vector<std::int64_t> ranges;
  for (const MemberRows& sums : kept) ranges.push_back(sums.rows);
  for_ranges(call.pool, members, ranges,
             [&](int member, std::size_t set, std::int64_t first, std::int64_t n) {
               const Rows sums = kept[set].of(member);
               sum_neighbours(call, set, x, member, first, n, {sums.row(first), sums.stride});
             });
}

void FusedSage::forward_refined(const FusedCall& call, MemberSet members, const MemberRows& x,
                                MemberRows& y, Kept& kept) const {
  const int count = x.members;
  const PlanLayer& plan_layer = layer_of(call);
  take_sums(call, count, members.needed, kept);
  // own = x Wself for every row up to the last own one, products[set] = sums Wset for each
  // neighbourhood
  std::int32_t own_rows = 0;
  for (const std::int32_t row : std::span(plan_layer.self.index).first(y.rows))
    own_rows = std::max(own_rows, row + 1);
  const MemberRows own = call.take(own_rows, out_stride_, count);
  std::vector<MemberRows> products;
  std::vector<std::int64_t> ranges{own.rows};
  for (const MemberRows& sums : kept) {
    products.push_back(call.take(sums.rows, out_stride_, count));
    ranges.push_back(sums.rows);
  }
  const auto multiply = [&](int member, std::size_t range, std::int64_t first, std::int64_t n) {
    const bool self = range == 0;
    const std::size_t set = self ? sets() : range - 1;
    const Rows input = self ? x.of(member) : kept[set].of(member);
    if (!self) sum_neighbours(call, set, x, member, first, n, {input.row(first), input.stride});
    gemm(call.precision, n, out_, in_, {input.row(first), input.stride},
         {call.weights(member) + weight_[set], out_}, 0,
         (self ? own : products[set]).of(member).row(first), out_stride_);
  };
  for_ranges(call.pool, members, ranges, multiply);
  for_blocks(call.pool, members, y.rows, [&](int member, std::int64_t first, std::int64_t n) {
    std::vector<const std::int32_t*> neighbourhood;
    std::vector<ConstRows> of_neighbourhood;
    for (std::size_t set = 0; set < sets(); ++set) {
      neighbourhood.push_back(plan_layer.edges[set].neighbourhood.index.data() + first);
      of_neighbourhood.push_back(products[set].of(member));
    }
    const ConstRows residual = residual_ ? x.of(member) : ConstRows{};
    combine_rows({plan_layer.self.index.data() + first, own.of(member), residual,
                  call.weights(member) + bias_, neighbourhood, of_neighbourhood},
                 n, out_, relu_, {y.of(member).row(first), out_stride_});
  });
}

MemberRows FusedSage::backward_refined(const FusedCall& call, MemberSet members,
                                       const MemberRows& x, const Kept& kept, MemberRows d_y,
                                       MemberGradients gradients) const {
  const PlanLayer& plan_layer = layer_of(call);
  // Gradients of the products that forward made (range 0: own, then the edge sets), and of their
  // operands.
  const std::int64_t rows_in = call.rows(step_, members.needed);
  std::vector<std::int64_t> ranges{members.needed ? call.plan.needed_counts[step_].self_rows
                                                  : rows_in};
  for (std::size_t set = 0; set < sets(); ++set)
    ranges.push_back(neighbourhoods(call, set, members.needed));
  std::vector<MemberRows> products, inputs;
  for (const std::int64_t rows : ranges) {
    products.push_back(call.take(rows, out_stride_, members.count));
    inputs.push_back(call.take(inputs.empty() ? rows_in : rows, in_stride_, members.count));
  }
  const auto weight_of = [&](std::size_t range) {
    return range == 0 ? weight_.back() : weight_[range - 1];
  };
  const auto multiply = [&](int member, std::size_t range, std::int64_t first, std::int64_t n) {
    const int place = member - members.first;
    const Rows product{products[range].of(place).row(first), out_stride_};
    const Rows input{inputs[range].of(place).row(first), in_stride_};
    spmm_rows(range == 0 ? plan_layer.self.transposed
                         : plan_layer.edges[range - 1].neighbourhood.transposed,
              first, n, d_y.of(place), out_, product, {.sources = d_y.rows});
    gemm(call.precision, n, in_, out_, {product.data, product.stride},
         {call.weights(member) + weight_of(range), out_, Transpose::yes}, 0, input.data,
         input.stride);
    if (range == 0 && residual_) add_rows(product, n, in_, input);
    if (range == 0 || !max_) return;
    const ConstRows best = kept[range - 1].of(member);
    spmm_max_shares(plan_layer.edges[range - 1].aggregate.forward, first, n, x.of(member),
                    {best.row(first), best.stride}, in_, input);
  };
  for_ranges(call.pool, members, ranges, multiply);
  d_y = {};

  const std::int64_t tiles = (in_ + kTileRows - 1) / kTileRows;
  const std::int64_t weight_tiles = tiles * static_cast<std::int64_t>(ranges.size());
  const auto weight_gradient = [&](int member, std::int64_t i) {
    float* const gradient = gradients[member].data();
    const int place = member - members.first;
    if (i == weight_tiles) {
      std::fill_n(gradient + bias_, out_, 0.0f);
      add_column_sums(products[0].of(place), products[0].rows, out_, gradient + bias_);
      return;
    }
    const std::size_t range = i / tiles;
    const std::int64_t first = i % tiles * kTileRows;
    const ConstRows input = range == 0 ? x.of(member) : kept[range - 1].of(member);
    gemm(call.precision, std::min(kTileRows, in_ - first), out_, ranges[range],
         {input.data + first, input.stride, Transpose::yes},
         {products[range].of(place).data, out_stride_}, 0,
         gradient + weight_of(range) + first * out_, out_);
  };
  const auto gather = [&](int member, std::size_t, std::int64_t first, std::int64_t n) {
    const int place = member - members.first;
    const Rows d_x{inputs[0].of(place).row(first), in_stride_};
    const ConstRows block{x.of(member).row(first), in_stride_};
    for (std::int64_t i = std::max<std::int64_t>(ranges[0] - first, 0); i < n; ++i)
      std::fill_n(d_x.row(i), in_, 0.0f);  // no needed row takes it as its own state
    if (sets() == 0 && after_relu_) relu_backward_rows(d_x, n, in_, block);
    for (std::size_t set = 0; set < sets(); ++set) {
      spread_to_neighbours(call, set, block, first, n, kept[set].of(member),
                           inputs[set + 1].of(place), d_x,
                           {.sources = ranges[set + 1],
                            .base = d_x,
                            .mask = after_relu_ && set + 1 == sets() ? block : ConstRows{}});
    }
  };
  for_ranges(call.pool, members, std::span(&rows_in, 1), gather, weight_tiles + 1, weight_gradient);
  return std::move(inputs[0]);
}

}  // namespace tpudist
