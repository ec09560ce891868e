#include "models/operators/sum_readout.hpp"

namespace tpudist {
namespace {

double weighted_sum(const Csr& csr, std::int64_t row, std::span<const double> values) {
  double total = 0;
  for (std::int64_t e = csr.begin[row]; e < csr.begin[row + 1]; ++e)
    total += csr.weight_of(e) * values[csr.source[e]];
  return total;
}

}  // namespace

void read_out_scores(const Readout& readout, std::span<const double> values, double scale,
                     std::span<double> delta, std::span<double> common) {
  std::vector<double> cells(readout.cells.forward.rows());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i] = scale * weighted_sum(readout.cells.forward, i, values);
  }
  for (std::size_t i = 0; i < delta.size(); ++i)
    delta[i] = weighted_sum(readout.scores.forward, i, cells);
  const bool all = static_cast<std::int64_t>(values.size()) == readout.common.transposed.rows();
  for (std::size_t i = 0; i < common.size(); ++i) {
    common[i] = all ? scale * weighted_sum(readout.common.forward, i, values) : 0;
  }
}

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

}  // namespace tpudist
