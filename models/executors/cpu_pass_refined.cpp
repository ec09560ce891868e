#include <algorithm>

#include "models/kernels/cpu_blocks.hpp"
#include "models/executors/cpu_pass.hpp"
#include "models/kernels/gemm.hpp"

// Layers of refined plans. A row behind the layer is a pair of its own row before the layer and a
// neighbourhood in each edge set. There are fewer of both than there are pairs, so each is
// multiplied by its weights once.

namespace tpudist {
namespace {

// Rows of a weight that make one task of its gradient.
constexpr std::int64_t kTileRows = 128;
// Columns of the head's weight that make one task of its gradient.
constexpr std::int64_t kHeadColumns = 64;

}  // namespace

// Takes memory for the sums of all neighbourhoods.
void CpuPass::take_sums(std::size_t index) {
  sums_[index].clear();
  for (std::size_t set = 0; set < plan_.layers[index]->edges.size(); ++set) {
    const std::int64_t count = neighbourhoods(index, set, forward_needed());
    sums_[index].push_back(take(count, layout_.layers[index].in_stride, all_.count));
  }
}

// Aggregates a block of neighbourhoods.
void CpuPass::sum_neighbours(std::size_t index, std::size_t set, int member, std::int64_t first,
                             std::int64_t count) const {
  const Rows sums = sums_[index][set].of(member);
  aggregate(index, set, member, first, count, {sums.row(first), sums.stride});
}

// Aggregates all neighbourhoods, without the products.
void CpuPass::make_sums(std::size_t index, Members members) {
  take_sums(index);
  std::vector<std::int64_t> ranges;
  for (const MemberRows& sums : sums_[index]) ranges.push_back(sums.rows);
  for_ranges(members, ranges,
             [&](int member, std::size_t set, std::int64_t first, std::int64_t count) {
               sum_neighbours(index, set, member, first, count);
             });
}

// Computes own = x Wself for every row before the layer, and products[set] = sums Wset for every
// neighbourhood.
void CpuPass::make_products(std::size_t index, Members members, const MemberRows& own,
                            std::span<const MemberRows> products) {
  const LayerLayout& layer = layout_.layers[index];
  const MemberRows& x = x_[index];
  std::vector<std::int64_t> ranges{x.rows};
  for (const MemberRows& product : products) ranges.push_back(product.rows);
  for_ranges(members, ranges,
             [&](int member, std::size_t range, std::int64_t first, std::int64_t count) {
               const bool self = range == 0;
               const std::size_t set = range - 1;
               if (!self) sum_neighbours(index, set, member, first, count);
               const Rows input = self ? x.of(member) : sums_[index][set].of(member);
               const WeightPart& weight = self ? layer.weights.back() : layer.weights[set];
               gemm(layout_.precision, count, layer.out, layer.in, {input.row(first), input.stride},
                    {weights(member) + weight.offset, layer.out}, 0,
                    (self ? own : products[set]).of(member).row(first), layer.out_stride);
             });
}

void CpuPass::forward_refined(std::size_t index, Members members) {
  const LayerLayout& layer = layout_.layers[index];
  const PlanLayer& plan_layer = *plan_.layers[index];
  const std::int64_t rows = this->rows(index + 1, forward_needed());
  const bool last = index + 1 == layout_.layers.size();
  const std::size_t sets = plan_layer.edges.size();
  const MemberRows own = take(x_[index].rows, layer.out_stride, all_.count);
  take_sums(index);
  std::vector<MemberRows> products;
  for (const MemberRows& sums : sums_[index]) {
    products.push_back(take(sums.rows, layer.out_stride, all_.count));
  }
  make_products(index, members, own, products);
  for_blocks(members, rows, [&](int member, std::int64_t first, std::int64_t count) {
    const Rows out{x_[index + 1].of(member).row(first), layer.out_stride};
    std::vector<const std::int32_t*> neighbourhood;
    std::vector<ConstRows> of_neighbourhood;
    for (std::size_t set = 0; set < sets; ++set) {
      neighbourhood.push_back(plan_layer.edges[set].neighbourhood.index.data() + first);
      of_neighbourhood.push_back(products[set].of(member));
    }
    const ConstRows residual = layer.residual ? x_[index].of(member) : ConstRows{};
    combine_rows({plan_layer.self.index.data() + first, own.of(member), residual,
                  weights(member) + layer.bias, neighbourhood, of_neighbourhood},
                 count, layer.out, layer.relu, out);
    if (last) apply_head(member, first, count, out);
  });
}

// Computes the head's gradient, and fills d_preactivation_ for the last layer.
void CpuPass::backward_head(Members members, std::span<const std::span<float>> gradients) {
  const LayerLayout& layer = layout_.layers.back();
  const std::int64_t rows = this->rows(layout_.layers.size(), members.needed);
  d_preactivation_ = take(rows, layer.out_stride, members.count);
  const auto row_gradient = [&](int member) {
    return row_gradient_.data() + (member - members.first) * rows;
  };
  const std::int64_t ranges[] = {rows};
  const auto spread = [&](int member, std::size_t, std::int64_t first, std::int64_t count) {
    const Rows z{d_preactivation_.of(member - members.first).row(first), layer.out_stride};
    outer_rows(row_gradient(member) + first, count, layer.out,
               weights(member) + layout_.head_weight, z);
    if (layer.relu) {
      relu_backward_rows(z, count, layer.out, {x_.back().of(member).row(first), layer.out_stride});
    }
  };
  const std::int64_t tiles = (layer.out + kHeadColumns - 1) / kHeadColumns;
  const auto weigh = [&](int member, std::int64_t tile) {
    float* const gradient = gradients[member].data();
    const std::int64_t column = tile * kHeadColumns;
    const std::int64_t width = std::min(kHeadColumns, layer.out - column);
    std::fill_n(gradient + layout_.head_weight + column, width, 0.0f);
    add_scaled_rows(row_gradient(member), {x_.back().of(member).data + column, layer.out_stride},
                    rows, width, gradient + layout_.head_weight + column);
    if (tile > 0) return;
    gradient[layout_.head_bias] = 0;
    add_column_sums({row_gradient(member), 1}, rows, 1, gradient + layout_.head_bias);
  };
  for_ranges(members, ranges, spread, tiles, weigh);
}

// Computes the gradients of the layer's parameters from d_preactivation_ of this layer, and replaces
// it by that of the layer d_input.
void CpuPass::backward_refined(std::size_t index, Members members,
                               std::span<const std::span<float>> gradients) {
  const LayerLayout& layer = layout_.layers[index];
  const PlanLayer& plan_layer = *plan_.layers[index];
  const std::size_t sets = plan_layer.edges.size();
  // Gradients of the products that forward_refined made (range 0: own, then the edge sets), and of
  // what was multiplied.
  const std::int64_t rows_in = rows(index, members.needed);
  std::vector<std::int64_t> ranges{members.needed ? plan_.needed_counts[index].self_rows : rows_in};
  for (std::size_t set = 0; set < sets; ++set)
    ranges.push_back(neighbourhoods(index, set, members.needed));
  std::vector<MemberRows> products, inputs;
  for (const std::int64_t rows : ranges) {
    products.push_back(take(rows, layer.out_stride, members.count));
    inputs.push_back(take(inputs.empty() ? rows_in : rows, layer.in_stride, members.count));
  }
  const auto weight_of = [&](std::size_t range) {
    return range == 0 ? layer.weights.back() : layer.weights[range - 1];
  };
  for_ranges(
      members, ranges, [&](int member, std::size_t range, std::int64_t first, std::int64_t count) {
        const int place = member - members.first;
        const Rows product{products[range].of(place).row(first), layer.out_stride};
        const Rows input{inputs[range].of(place).row(first), layer.in_stride};
        spmm_rows(range == 0 ? plan_layer.self.transposed
                             : plan_layer.edges[range - 1].neighbourhood.transposed,
                  first, count, d_preactivation_.of(place), layer.out, product,
                  {.sources = d_preactivation_.rows});
        gemm(layout_.precision, count, layer.in, layer.out, {product.data, product.stride},
             {weights(member) + weight_of(range).offset, layer.out, Transpose::yes}, 0, input.data,
             input.stride);
        if (range == 0 && layer.residual) add_rows(product, count, layer.in, input);
        if (range == 0 || !layer.max) return;
        const ConstRows best = sums_[index][range - 1].of(member);
        spmm_max_shares(plan_layer.edges[range - 1].aggregate.forward, first, count,
                        x_[index].of(member), {best.row(first), best.stride}, layer.in, input);
      });

  const std::int64_t tiles = (layer.in + kTileRows - 1) / kTileRows;
  const std::int64_t weight_tiles = tiles * static_cast<std::int64_t>(ranges.size());
  const auto weight_gradient = [&](int member, std::int64_t i) {
    float* const gradient = gradients[member].data();
    const int place = member - members.first;
    if (i == weight_tiles) {
      std::fill_n(gradient + layer.bias, layer.out, 0.0f);
      add_column_sums(products[0].of(place), products[0].rows, layer.out, gradient + layer.bias);
      return;
    }
    const std::size_t range = i / tiles;
    const std::int64_t first = i % tiles * kTileRows;
    const ConstRows input = range == 0 ? x_[index].of(member) : sums_[index][range - 1].of(member);
    gemm(layout_.precision, std::min(kTileRows, layer.in - first), layer.out, ranges[range],
         {input.data + first, input.stride, Transpose::yes},
         {products[range].of(place).data, layer.out_stride}, 0,
         gradient + weight_of(range).offset + first * layer.out, layer.out);
  };
  const ConstRows no_mask{};
  const bool relu = index == 0 || layout_.layers[index - 1].relu;
  const auto gather_input_gradient = [&](int member, std::size_t, std::int64_t first,
                                         std::int64_t count) {
    const int place = member - members.first;
    const Rows d_input{inputs[0].of(place).row(first), layer.in_stride};
    const ConstRows x{x_[index].of(member).row(first), layer.in_stride};
    for (std::int64_t i = std::max<std::int64_t>(ranges[0] - first, 0); i < count; ++i) {
      std::fill_n(d_input.row(i), layer.in, 0.0f);  // no needed row takes it as its own state
    }
    if (sets == 0 && relu) relu_backward_rows(d_input, count, layer.in, x);
    for (std::size_t set = 0; set < sets; ++set) {
      spread_to_neighbours(index, set, member, first, count, sums_[index][set].of(member),
                           inputs[set + 1].of(place), d_input,
                           {.sources = ranges[set + 1],
                            .base = d_input,
                            .mask = relu && set + 1 == sets ? x : no_mask});
    }
  };
  for_ranges(members, std::span(&rows_in, 1), gather_input_gradient, weight_tiles + 1,
             weight_gradient);
  d_preactivation_ = std::move(inputs[0]);
}

}  // namespace tpudist
