#include <algorithm>

#include "models/cpu_blocks.hpp"
#include "models/cpu_pass.hpp"
#include "models/gemm.hpp"

namespace tpudist {
namespace {

// Rows of a group of members whose gradients stay in the caches at the same time, and make enough
// tasks.
constexpr std::int64_t kGroupRows = 4096;
// Floats of one task of the addition of partial gradients.
constexpr std::int64_t kPiece = 16384;

}  // namespace

float* block_scratch(int slot, std::int64_t floats) {
  thread_local AlignedFloats scratch[2];
  if (static_cast<std::int64_t>(scratch[slot].size()) < floats)
    scratch[slot] = AlignedFloats(floats);
  return scratch[slot].data();
}

CpuPass::Partials CpuPass::take_partials(Group group, std::int64_t parts, std::int64_t begin,
                                         std::int64_t end) {
  return {buffers_.take(group.count * parts * (end - begin)), parts, begin, end - begin};
}

void CpuPass::add_partials(const Partials& partials, Group group,
                           std::span<const std::span<float>> gradients) const {
  const std::int64_t pieces = (partials.length + kPiece - 1) / kPiece;
  pool_.parallel_for(group.count * pieces, [&](std::int64_t i) {
    const std::int64_t member = i / pieces, at = i % pieces * kPiece;
    sum_parts(partials.of(member, 0) + at, partials.length, partials.parts,
              std::min(kPiece, partials.length - at),
              gradients[group.first + member].data() + partials.begin + at);
  });
}

// d loss / d x_[layer] for a block of its rows, from the gradient of the layer's input, which has
// the layer's output rows: all of them or the needed ones. Zero where the mask is not positive.
void CpuPass::fill_output_gradient(std::size_t layer, int member, int place, std::int64_t first,
                                   std::int64_t count, Rows block, ConstRows mask) const {
  const std::int64_t own = std::clamp<std::int64_t>(above_.rows - first, 0, count);
  if (own > 0 && own < count) {  // the rows behind are nobody's past
    const ConstRows rest = mask.data ? ConstRows{mask.row(own), mask.stride} : mask;
    fill_output_gradient(layer, member, place, first, own, block, mask);
    fill_output_gradient(layer, member, place, first + own, count - own,
                         {block.row(own), block.stride}, rest);
    return;
  }
  const LayerLayout& above = layout_.layers[layer];
  const Step& step = *plan_.steps[layer];
  const ConstRows gradient = above_.of(place);
  const ConstRows self{gradient.data + above.self_column, gradient.stride};
  const std::size_t sets = step.edges.size();
  ConstRows sum;  // so far; the last pass applies the mask
  if (own > 0) sum = {self.row(first), self.stride};
  if (sets == 0) {
    if (own > 0) {
      copy_rows(sum, count, above.in, block);
    } else {
      for (std::int64_t i = 0; i < count; ++i) std::fill_n(block.row(i), above.in, 0.0f);
    }
    if (mask.data) mask_rows(block, count, above.in, mask);
  }
  for (std::size_t set = 0; set < sets; ++set) {
    const std::int64_t column = above.weights[set].column, lanes = step.edges[set].sum.lanes;
    ConstRows best;
    if (above.max) best = {above_best_.of(place).data + column, above_best_.stride};
    spread_to_neighbours(layer, set, member, first, count, best,
                         {gradient.data + column, gradient.stride}, block,
                         {.lanes = lanes,
                          .sources = above_.rows / lanes,
                          .base = sum,
                          .mask = set + 1 == sets ? mask : ConstRows{}});
    sum = block;
  }
}

void CpuPass::backward_block(std::size_t index, int member, int place, std::int64_t first,
                             std::int64_t count, bool fresh, float* partial) {
  const LayerLayout& layer = layout_.layers[index];
  const float* const w = weights(member);
  const auto place_of = [&](std::int64_t offset) { return partial + (offset - layer.begin); };
  const Rows z{block_scratch(1, kBlockRows * layer.out_stride), layer.out_stride};
  const ConstRows out{x_[index + 1].of(member).row(first), layer.out_stride};
  if (index + 1 == layout_.layers.size()) {
    const float* const gradient = row_gradient_.data() + place * below_.rows + first;
    outer_rows(gradient, count, layer.out, w + layout_.head_weight, z);
    add_scaled_rows(gradient, out, count, layer.out, place_of(layout_.head_weight));
    add_column_sums({gradient, 1}, count, 1, place_of(layout_.head_bias));
    if (layer.relu) mask_rows(z, count, layer.out, out);
  } else {
    fill_output_gradient(index + 1, member, place, first, count, z, layer.relu ? out : ConstRows{});
  }
  add_column_sums(z, count, layer.out, place_of(layer.bias));

  float* const input = block_scratch(0, kBlockRows * layer.input_stride);
  fill_input(index, member, first, count, input);
  const Rows below{below_.of(place).row(first), layer.input_stride};
  for (const WeightPart& part : layer.parts) {
    gemm(layout_.precision, part.width, layer.out, count,
         {input + part.column, layer.input_stride, Transpose::yes}, {z.data, z.stride},
         fresh ? 0 : 1, place_of(part.offset), layer.out);
    gemm(layout_.precision, count, part.width, layer.out, {z.data, z.stride},
         {w + part.offset, layer.out, Transpose::yes}, 0, below.data + part.column, below.stride);
  }
  if (layer.residual) add_rows(z, count, layer.in, {below.data + layer.self_column, below.stride});
  if (!layer.max) return;
  copy_rows({input, layer.input_stride}, count, layer.self_column,
            {below_best_.of(place).row(first), below_best_.stride});
  for (std::size_t set = 0; set < plan_.steps[index]->edges.size(); ++set) {
    const Relation& edges = plan_.steps[index]->edges[set].sum;
    const std::int64_t column = layer.weights[set].column;
    share_max_gradient(edges.in, first, count, x_[index].of(member),
                       {input + column, layer.input_stride}, layer.in,
                       {below.data + column, below.stride}, edges.lanes);
  }
}

void CpuPass::backward_aligned(std::size_t index, Group group, Partials& partials) {
  const LayerLayout& layer = layout_.layers[index];
  const std::int64_t rows = this->rows(index + 1, group.needed), blocks = block_count(rows);
  above_ = std::move(below_);
  below_ = take(rows, layer.input_stride, group.count);
  above_best_ = std::move(below_best_);
  below_best_ = {};
  if (layer.max) below_best_ = take(rows, layer.self_column, group.count);
  partials = take_partials(group, chunk_count(blocks), layer.begin,
                           index + 1 == layout_.layers.size() ? layout_.head_end : layer.end);
  const auto run = [&](int member, std::int64_t chunk, std::int64_t begin, std::int64_t end) {
    const int place = member - group.first;
    float* const partial = partials.of(place, chunk);
    // Behind the weights, which the first block writes.
    std::fill(partial + (layer.bias - layer.begin), partial + partials.length, 0.0f);
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block * kBlockRows;
      backward_block(index, member, place, first, std::min(kBlockRows, rows - first),
                     block == begin, partial);
    }
  };
  for_chunks(group, blocks, run);
}

// d loss / d value of the last layer's rows.
void CpuPass::spread_scores(Group group, std::span<const double> score_gradient) {
  const std::int64_t rows = this->rows(layout_.layers.size(), group.needed);
  row_gradient_.resize(group.count * rows);
  std::vector<CellGradient> cells(group.count);
  pool_.parallel_for(group.count, [&](std::int64_t place) {
    const std::int64_t member = group.first + place;
    cells[place] = spread_to_cells(plan_.readout,
                                   score_gradient.subspan(member * plan_.configs, plan_.configs),
                                   output_scale_);
  });
  for_blocks(group, rows, [&](int member, std::int64_t first, std::int64_t count) {
    const std::int64_t place = member - group.first;
    spread_to_rows(plan_.readout, cells[place], first,
                   std::span(row_gradient_).subspan(place * rows + first, count));
  });
}

// d loss / d x_[0] before its activation, in above_.
void CpuPass::join_gradient_aligned(Group group) {
  above_ = std::move(below_);
  above_best_ = std::move(below_best_);
  const std::int64_t rows = this->rows(0, group.needed);
  below_ = take(rows, layout_.stride, group.count);
  for_blocks(group, rows, [&](int member, std::int64_t first, std::int64_t count) {
    const int place = member - group.first;
    const Rows z{below_.of(place).row(first), layout_.stride};
    fill_output_gradient(0, member, place, first, count, z,
                         {x_[0].of(member).row(first), layout_.stride});
  });
  above_ = std::move(below_);
}

void CpuPass::backward_group(Group group, const ScoreGradient& score_gradient,
                             std::span<const std::span<float>> gradients) {
  spread_scores(group, score_gradient.values);
  Partials partials;
  if (plan_.shares_rows()) backward_head(group, gradients);
  for (std::size_t layer = layout_.layers.size(); layer-- > 0;) {
    run_again(layer, group);
    if (plan_.shares_rows()) {
      forget_states(layer + 1, group);
      backward_shared(layer, group, gradients);
      if (recompute_ || group.first + group.count == all_.count) sums_[layer].clear();
    } else {
      backward_aligned(layer, group, partials);
      add_partials(partials, group, gradients);
      forget_states(layer + 1, group);
    }
  }
  if (!plan_.shares_rows()) join_gradient_aligned(group);
  backward_encoder(group, partials);
  add_partials(partials, group, gradients);
  above_ = {};
  below_ = {};
  above_best_ = {};
}

void CpuPass::clear_padding(std::span<const std::span<float>> gradients) const {
  const auto& entries = layout_.table.entries();
  for (const std::span<float> gradient : gradients) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::int64_t end =
          i + 1 < entries.size() ? entries[i + 1].offset : layout_.table.length();
      const std::int64_t used = entries[i].offset + entries[i].size();
      std::fill(gradient.data() + used, gradient.data() + end, 0.0f);
    }
  }
}

void CpuPass::backward(const ScoreGradient& score_gradient,
                       std::span<const std::span<float>> gradients) {
  const auto needed_only = [&](int member) {
    return forward_needed() || score_gradient.ignores_shift(member);
  };
  std::int64_t rows = 1;
  for (const MemberRows& x : x_) rows = std::max(rows, x.rows);
  const int together =
      static_cast<int>(std::clamp<std::int64_t>(kGroupRows / rows, 1, std::max(all_.count, 1)));
  for (int first = 0; first < all_.count;) {
    Group group{first, 1, needed_only(first)};
    while (group.count < together && first + group.count < all_.count &&
           needed_only(first + group.count) == group.needed) {
      ++group.count;
    }
    backward_group(group, score_gradient, gradients);
    first += group.count;
  }
  clear_padding(gradients);
}

}  // namespace tpudist
