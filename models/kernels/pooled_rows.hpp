#pragma once

#include <cstdint>

#include "models/kernels/aggregate.hpp"

namespace tpudist {

// A Readout in the memory of the current CUDA device. The cells of a plan are summed once for all
// configurations of a class, and common rows once for a slate.
struct ReadoutPointers {
  CsrPointers cells, rows_of_cells;     // [cells] <- rows, and the transpose
  CsrPointers common, rows_of_common;   // [slates] <- rows, and the transpose
  CsrPointers scores, configs_of_cell;  // [configurations] <- cells, and the transpose
  CsrPointers configs_of_slate;         // [slates] <- configurations
  const std::int32_t* slate = nullptr;  // [configurations]
  const double* nodes = nullptr;        // [configurations] number of nodes of each
};

// Intermediate values between the two steps of the readout, [cells, width] and [slates, width].
struct ReadoutParts {
  Planes<double> cells, common;
};

// The functions are as in aggregate.hpp. x and d_x are [rows, width] of T, float or double; y and
// d_y are [configurations, width]; everything except T is double. launch_aggregate computes the
// sums over rows.

// y[k] = the sum of k's cells and of the common rows of its slate; with `mean` divided by its
// nodes.
void launch_read_out(const ReadoutPointers& readout, Columns columns, const ReadoutParts& sums,
                     bool mean, Planes<double> y, CUstream_st* stream);
// d_parts from d_y: the transposed operation.
void launch_spread_scores(const ReadoutPointers& readout, Columns columns, Planes<const double> d_y,
                          bool mean, const ReadoutParts& d_parts, CUstream_st* stream);
// d_x[row] = the sum of weight * d_parts over the row's cells and slates.
template <typename T>
void launch_spread_parts(const ReadoutPointers& readout, Columns columns,
                         const ReadoutParts& d_parts, Planes<T> d_x, CUstream_st* stream);

// best[i] = the largest row of cell or slate i of `matrix`, minus infinity if it has none, NaN if
// one is NaN; ties[i] = number of nodes that reach it.
template <typename T>
void launch_pool_max(const CsrPointers& matrix, Columns columns, Planes<const T> x,
                     Planes<double> best, Planes<double> ties, Planes<double> parts,
                     CUstream_st* stream);
// y[k] = the largest of k's cells and its slate's common rows.
void launch_read_out_max(const ReadoutPointers& readout, Columns columns, const ReadoutParts& best,
                         Planes<double> y, CUstream_st* stream);
// part[k] = d_y[k] / the ties of all that reach y[k], 0 if nothing does. [configurations, width]
void launch_max_parts(const ReadoutPointers& readout, Columns columns, const ReadoutParts& best,
                      const ReadoutParts& ties, Planes<const double> y, Planes<const double> d_y,
                      Planes<double> part, CUstream_st* stream);
// share[i] = the sum of the parts of those configurations of cell or slate i whose y equals
// best[i]. `configs` is configs_of_cell or configs_of_slate.
void launch_max_parts_of(const CsrPointers& configs, Columns columns, Planes<const double> best,
                         Planes<const double> y, Planes<const double> part, Planes<double> share,
                         CUstream_st* stream);
// d_x[row] = the sum of weight * share over those cells and slates whose best equals the row.
template <typename T>
void launch_spread_shares(const ReadoutPointers& readout, Columns columns, Planes<const T> x,
                          const ReadoutParts& best, const ReadoutParts& share, Planes<T> d_x,
                          CUstream_st* stream);

}  // namespace tpudist
