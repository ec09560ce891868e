#include "models/network/fused_pass.hpp"

#include <algorithm>
#include <vector>

#include "models/kernels/cpu_blocks.hpp"

namespace tpudist {
namespace {

// Columns of the weight that make one task of its gradient.
constexpr std::int64_t kColumns = 64;

// The sum of weight * value over the entries of a row.
double weighted_sum(const Csr& csr, std::int64_t row, std::span<const double> values) {
  double total = 0;
  for (std::int64_t e = csr.begin[row]; e < csr.begin[row + 1]; ++e)
    total += csr.weight_of(e) * values[csr.source[e]];
  return total;
}

// Computes one member's scores from `values` [rows after the last layer]. It adds them up over each
// configuration (`delta` [configurations]) and over the common rows (`common` [slates]), times
// `scale`. It computes in double and in the order of the plan. Where `values` holds only the needed
// rows, `common` is 0. The member takes from `kept` the values and cells that the plan lacks.
void read_out_scores(const Readout& readout, std::span<const double> values, double scale,
                     std::span<double> delta, std::span<double> common, const KeptUse& kept,
                     int member) {
  // Puts the numbers that the plan takes in the place of those that it computes.
  const auto take = [&](std::size_t depth, std::span<const double> computed) {
    const KeptLevel& level = kept.levels[depth];
    std::vector<double> taken(level.taken.size());
    kept.rows->exchange(depth, member, level, reinterpret_cast<const float*>(computed.data()),
                        reinterpret_cast<float*>(taken.data()), 2);
    return taken;
  };
  std::vector<double> taken;
  if (kept.rows) values = taken = take(kept.levels.size() - 2, values);
  std::vector<double> cells(readout.cells.forward.rows());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i] = scale * weighted_sum(readout.cells.forward, i, values);
  }
  if (kept.rows) cells = take(kept.levels.size() - 1, cells);
  for (std::size_t i = 0; i < delta.size(); ++i)
    delta[i] = weighted_sum(readout.scores.forward, i, cells);
  const bool all = static_cast<std::int64_t>(values.size()) == readout.common.transposed.rows();
  for (std::size_t i = 0; i < common.size(); ++i) {
    common[i] = all ? scale * weighted_sum(readout.common.forward, i, values) : 0;
  }
  if (kept.rows) common[0] = cells.back();
}

// The transpose of read_out_scores in two steps. spread_to_cells computes d loss / d cell [cells]
// and d loss / d common sum [slates] from d loss / d score [configurations]. From these,
// spread_to_rows computes d loss / d value of rows first .. first + rows.size() - 1.
struct CellGradient {
  std::vector<double> cell, slate;
};
CellGradient spread_to_cells(const Readout& readout, std::span<const double> score_gradient,
                             double scale) {
  CellGradient gradient;
  for (std::int64_t cell = 0; cell < readout.scores.transposed.rows(); ++cell) {
    gradient.cell.push_back(scale * weighted_sum(readout.scores.transposed, cell, score_gradient));
  }
  gradient.slate.assign(readout.common.forward.rows(), 0.0);
  for (std::size_t k = 0; k < score_gradient.size(); ++k)
    gradient.slate[readout.slate_of_config[k]] += scale * score_gradient[k];
  return gradient;
}

void spread_to_rows(const Readout& readout, const CellGradient& gradient, std::int64_t first,
                    std::span<float> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t row = first + static_cast<std::int64_t>(i);
    rows[i] = static_cast<float>(weighted_sum(readout.cells.transposed, row, gradient.cell) +
                                 weighted_sum(readout.common.transposed, row, gradient.slate));
  }
}

// d loss / d value of every row after the last layer: [members of the set, rows].
std::vector<float> spread_scores(const FusedCall& call, MemberSet members, std::int64_t rows,
                                 std::span<const double> score_gradient, double scale) {
  const Plan& plan = call.plan;
  std::vector<float> d_values(members.count * rows);
  std::vector<CellGradient> cells(members.count);
  call.pool.parallel_for(members.count, [&](std::int64_t place) {
    const auto own = score_gradient.subspan((members.first + place) * plan.configs, plan.configs);
    cells[place] = spread_to_cells(plan.readout, own, scale);
  });
  for_blocks(call.pool, members, rows, [&](int member, std::int64_t first, std::int64_t count) {
    const std::int64_t place = member - members.first;
    spread_to_rows(plan.readout, cells[place], first,
                   std::span(d_values).subspan(place * rows + first, count));
  });
  return d_values;
}

}  // namespace

FusedReadout::FusedReadout(std::int64_t in, double scale, const ParameterTable& table,
                           bool after_relu)
    : in_(in),
      weight_(table.find("head.weight").offset),
      bias_(table.find("head.bias").offset),
      scale_(scale),
      after_relu_(after_relu) {}

UnitScores FusedReadout::forward(const FusedCall& call, const MemberRows& x, const KeptUse& kept,
                                 int first_member) const {
  const Readout& readout = call.plan.readout;
  const std::int64_t configs = call.plan.configs, slates = readout.common.forward.rows();
  std::vector<double> values(x.members * x.rows);
  for_blocks(call.pool, {0, x.members}, x.rows,
             [&](int member, std::int64_t first, std::int64_t count) {
               const float* const w = call.weights(member);
               double* const own = values.data() + member * x.rows + first;
               dot_rows({x.of(member).row(first), x.stride}, count, in_, w + weight_, own);
               for (std::int64_t i = 0; i < count; ++i) own[i] += w[bias_];
             });
  UnitScores scores{x.members, configs, std::vector<double>(x.members * configs),
                    std::vector<double>(x.members * slates)};
  call.pool.parallel_for(x.members, [&](std::int64_t member) {
    read_out_scores(readout, std::span(values).subspan(member * x.rows, x.rows), scale_,
                    std::span(scores.delta).subspan(member * configs, configs),
                    std::span(scores.common).subspan(member * slates, slates), kept,
                    first_member + static_cast<int>(member));
  });
  return scores;
}

MemberRows FusedReadout::backward(const FusedCall& call, MemberSet members, const MemberRows& x,
                                  std::span<const double> score_gradient,
                                  MemberGradients gradients) const {
  const std::int64_t rows = call.rows(call.plan.layers.size(), members.needed);
  const std::vector<float> d_values = spread_scores(call, members, rows, score_gradient, scale_);
  const auto gradient_of = [&](int member) {
    return d_values.data() + (member - members.first) * rows;
  };
  MemberRows d_x = call.take(rows, x.stride, members.count);
  const auto spread = [&](int member, std::size_t, std::int64_t first, std::int64_t count) {
    const Rows own{d_x.of(member - members.first).row(first), x.stride};
    outer_rows(gradient_of(member) + first, count, in_, call.weights(member) + weight_, own);
    if (after_relu_) relu_backward_rows(own, count, in_, {x.of(member).row(first), x.stride});
  };
  // On dense plans the sums are made within each chunk of rows (the chunks of the layers), and then
  // over the chunks.
  const std::int64_t chunk = call.plan.is_refined() ? std::max<std::int64_t>(rows, 1)
                                                    : chunk_blocks(block_count(rows)) * kBlockRows;
  const auto weigh = [&](int member, std::int64_t tile) {
    const std::int64_t column = tile * kColumns, width = std::min(kColumns, in_ - column);
    float* const d_weight = gradients[member].data() + weight_ + column;
    float* const d_bias = gradients[member].data() + bias_;
    std::fill_n(d_weight, width, 0.0f);
    if (tile == 0) *d_bias = 0;
    for (std::int64_t first = 0; first < rows; first += chunk) {
      const std::int64_t count = std::min(chunk, rows - first);
      const float* const scale = gradient_of(member) + first;
      float part[kColumns] = {}, bias = 0;
      add_scaled_rows(scale, {x.of(member).row(first) + column, x.stride}, count, width, part);
      for (std::int64_t c = 0; c < width; ++c) d_weight[c] += part[c];
      if (tile > 0) continue;
      add_column_sums({scale, 1}, count, 1, &bias);
      *d_bias += bias;
    }
  };
  for_ranges(call.pool, members, std::span(&rows, 1), spread, (in_ + kColumns - 1) / kColumns,
             weigh);
  return d_x;
}

}  // namespace tpudist
