#include <algorithm>

#include "models/kernels/cpu_blocks.hpp"
#include "models/executors/cpu_pass.hpp"
#include "models/kernels/gemm.hpp"

namespace tpudist {
namespace {

// Rows of all members that run backward together: their gradients stay in the caches at the same
// time, and they make enough tasks.
constexpr std::int64_t kRowsTogether = 4096;
// Floats of one task of the addition of partial gradients.
constexpr std::int64_t kPiece = 16384;

}  // namespace

CpuPass::Partials CpuPass::take_partials(Members members, std::int64_t parts, std::int64_t begin,
                                         std::int64_t end) {
  return {buffers_.take(members.count * parts * (end - begin)), parts, begin, end - begin};
}

void CpuPass::add_partials(const Partials& partials, Members members,
                           std::span<const std::span<float>> gradients) const {
  const std::int64_t pieces = (partials.length + kPiece - 1) / kPiece;
  pool_.parallel_for(members.count * pieces, [&](std::int64_t i) {
    const std::int64_t member = i / pieces, at = i % pieces * kPiece;
    sum_parts(partials.of(member, 0) + at, partials.length, partials.parts,
              std::min(kPiece, partials.length - at),
              gradients[members.first + member].data() + partials.begin + at);
  });
}

// d loss / d x_[layer] for a block of its rows, from the gradient of the layer's input, which has
// the layer's output rows: all of them or the needed ones. Zero where the mask is not positive.
void CpuPass::fill_output_gradient(std::size_t layer, int member, int place, std::int64_t first,
                                   std::int64_t count, Rows block, ConstRows mask) const {
  const std::int64_t own = std::clamp<std::int64_t>(d_input_above_.rows - first, 0, count);
  if (own > 0 && own < count) {  // no row of the next layer takes the rest as its own state
    const ConstRows rest = mask.data ? ConstRows{mask.row(own), mask.stride} : mask;
    fill_output_gradient(layer, member, place, first, own, block, mask);
    fill_output_gradient(layer, member, place, first + own, count - own,
                         {block.row(own), block.stride}, rest);
    return;
  }
  const LayerLayout& above = layout_.layers[layer];
  const PlanLayer& plan_layer = *plan_.layers[layer];
  const ConstRows gradient = d_input_above_.of(place);
  const ConstRows self{gradient.data + above.self_column, gradient.stride};
  const std::size_t sets = plan_layer.edges.size();
  ConstRows sum;  // so far; the last pass applies the mask
  if (own > 0) sum = {self.row(first), self.stride};
  if (sets == 0) {
    if (own > 0) {
      copy_rows(sum, count, above.in, block);
    } else {
      for (std::int64_t i = 0; i < count; ++i) std::fill_n(block.row(i), above.in, 0.0f);
    }
    if (mask.data) relu_backward_rows(block, count, above.in, mask);
  }
  for (std::size_t set = 0; set < sets; ++set) {
    const std::int64_t column = above.weights[set].column,
                       replicas = plan_layer.edges[set].aggregate.replicas;
    ConstRows best;
    if (above.max) best = {maxima_above_.of(place).data + column, maxima_above_.stride};
    spread_to_neighbours(layer, set, member, first, count, best,
                         {gradient.data + column, gradient.stride}, block,
                         {.replicas = replicas,
                          .sources = d_input_above_.rows / replicas,
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
    const float* const gradient = row_gradient_.data() + place * d_input_.rows + first;
    outer_rows(gradient, count, layer.out, w + layout_.head_weight, z);
    add_scaled_rows(gradient, out, count, layer.out, place_of(layout_.head_weight));
    add_column_sums({gradient, 1}, count, 1, place_of(layout_.head_bias));
    if (layer.relu) relu_backward_rows(z, count, layer.out, out);
  } else {
    fill_output_gradient(index + 1, member, place, first, count, z, layer.relu ? out : ConstRows{});
  }
  add_column_sums(z, count, layer.out, place_of(layer.bias));

  float* const input = block_scratch(0, kBlockRows * layer.input_stride);
  fill_input(index, member, first, count, input);
  const Rows d_input{d_input_.of(place).row(first), layer.input_stride};
  for (const WeightPart& part : layer.parts) {
    gemm(layout_.precision, part.width, layer.out, count,
         {input + part.column, layer.input_stride, Transpose::yes}, {z.data, z.stride},
         fresh ? 0 : 1, place_of(part.offset), layer.out);
    gemm(layout_.precision, count, part.width, layer.out, {z.data, z.stride},
         {w + part.offset, layer.out, Transpose::yes}, 0, d_input.data + part.column,
         d_input.stride);
  }
  if (layer.residual)
    add_rows(z, count, layer.in, {d_input.data + layer.self_column, d_input.stride});
  if (!layer.max) return;
  copy_rows({input, layer.input_stride}, count, layer.self_column,
            {maxima_.of(place).row(first), maxima_.stride});
  for (std::size_t set = 0; set < plan_.layers[index]->edges.size(); ++set) {
    const SparseMatrix& edges = plan_.layers[index]->edges[set].aggregate;
    const std::int64_t column = layer.weights[set].column;
    spmm_max_shares(edges.forward, first, count, x_[index].of(member),
                    {input + column, layer.input_stride}, layer.in,
                    {d_input.data + column, d_input.stride}, edges.replicas);
  }
}

void CpuPass::backward_dense(std::size_t index, Members members, Partials& partials) {
  const LayerLayout& layer = layout_.layers[index];
  const std::int64_t rows = this->rows(index + 1, members.needed), blocks = block_count(rows);
  d_input_above_ = std::move(d_input_);
  d_input_ = take(rows, layer.input_stride, members.count);
  maxima_above_ = std::move(maxima_);
  maxima_ = {};
  if (layer.max) maxima_ = take(rows, layer.self_column, members.count);
  partials = take_partials(members, chunk_count(blocks), layer.begin,
                           index + 1 == layout_.layers.size() ? layout_.head_end : layer.end);
  const auto run = [&](int member, std::int64_t chunk, std::int64_t begin, std::int64_t end) {
    const int place = member - members.first;
    float* const partial = partials.of(place, chunk);
    // Behind the weights, which the first block writes.
    std::fill(partial + (layer.bias - layer.begin), partial + partials.length, 0.0f);
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block * kBlockRows;
      backward_block(index, member, place, first, std::min(kBlockRows, rows - first),
                     block == begin, partial);
    }
  };
  for_chunks(members, blocks, run);
}

// d loss / d value of the last layer's rows.
void CpuPass::spread_scores(Members members, std::span<const double> score_gradient) {
  const std::int64_t rows = this->rows(layout_.layers.size(), members.needed);
  row_gradient_.resize(members.count * rows);
  std::vector<CellGradient> cells(members.count);
  pool_.parallel_for(members.count, [&](std::int64_t place) {
    const std::int64_t member = members.first + place;
    cells[place] = spread_to_cells(plan_.readout,
                                   score_gradient.subspan(member * plan_.configs, plan_.configs),
                                   output_scale_);
  });
  for_blocks(members, rows, [&](int member, std::int64_t first, std::int64_t count) {
    const std::int64_t place = member - members.first;
    spread_to_rows(plan_.readout, cells[place], first,
                   std::span(row_gradient_).subspan(place * rows + first, count));
  });
}

// Fills d_preactivation_ with d loss / d x_[0] before its activation.
void CpuPass::join_gradient_dense(Members members) {
  d_input_above_ = std::move(d_input_);
  maxima_above_ = std::move(maxima_);
  const std::int64_t rows = this->rows(0, members.needed);
  d_preactivation_ = take(rows, layout_.stride, members.count);
  for_blocks(members, rows, [&](int member, std::int64_t first, std::int64_t count) {
    const int place = member - members.first;
    const Rows z{d_preactivation_.of(place).row(first), layout_.stride};
    fill_output_gradient(0, member, place, first, count, z,
                         {x_[0].of(member).row(first), layout_.stride});
  });
  d_input_above_ = {};
}

void CpuPass::backward_members(Members members, const ScoreGradient& score_gradient,
                               std::span<const std::span<float>> gradients) {
  spread_scores(members, score_gradient.values);
  Partials partials;
  if (plan_.is_refined()) backward_head(members, gradients);
  for (std::size_t layer = layout_.layers.size(); layer-- > 0;) {
    run_again(layer, members);
    if (plan_.is_refined()) {
      forget_states(layer + 1, members);
      backward_refined(layer, members, gradients);
      if (recompute_ || members.first + members.count == all_.count) sums_[layer].clear();
    } else {
      backward_dense(layer, members, partials);
      add_partials(partials, members, gradients);
      forget_states(layer + 1, members);
    }
  }
  if (!plan_.is_refined()) join_gradient_dense(members);
  backward_encoder(members, partials);
  add_partials(partials, members, gradients);
  d_preactivation_ = {};
  maxima_above_ = {};
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
    return forward_needed() || score_gradient.is_translation_invariant(member);
  };
  std::int64_t rows = 1;
  for (const MemberRows& x : x_) rows = std::max(rows, x.rows);
  const int together =
      static_cast<int>(std::clamp<std::int64_t>(kRowsTogether / rows, 1, std::max(all_.count, 1)));
  for (int first = 0; first < all_.count;) {
    Members members{first, 1, needed_only(first)};
    while (members.count < together && first + members.count < all_.count &&
           needed_only(first + members.count) == members.needed) {
      ++members.count;
    }
    backward_members(members, score_gradient, gradients);
    first += members.count;
  }
  clear_padding(gradients);
}

}  // namespace tpudist
