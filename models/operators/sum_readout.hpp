#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/plan.hpp"

namespace tpudist {

// Computes one member's scores from `values` [rows after the last layer]. It adds them up over each
// configuration (`delta` [configurations]) and over the common rows (`common` [slates]), times
// `scale`. It computes in double and in the order of the plan. Where `values` holds only the needed
// rows, `common` is 0.
void read_out_scores(const Readout& readout, std::span<const double> values, double scale,
                     std::span<double> delta, std::span<double> common);
// The transpose of read_out_scores in two steps. spread_to_cells computes d loss / d cell [cells]
// and d loss / d common sum [slates] from d loss / d score [configurations]. From these,
// spread_to_rows computes d loss / d value of rows first .. first + rows.size() - 1.
struct CellGradient {
  std::vector<double> cell, slate;
};
CellGradient spread_to_cells(const Readout& readout, std::span<const double> score_gradient,
                             double scale);
void spread_to_rows(const Readout& readout, const CellGradient& gradient, std::int64_t first,
                    std::span<float> rows);

}  // namespace tpudist
