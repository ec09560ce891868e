#pragma once

#include "models/kernels/aggregate.hpp"

namespace tpudist {

// The gradient of x W + b with respect to W and b, for rows on a device, as launch_aggregate starts
// its kernels: y [in + 1, out] is x^T d_y, and in its last row, if there is a `bias`, the sum of the
// rows of d_y; else it is [in, out]. x is [rows, in], d_y [rows, out], all dense. A thread adds the
// rows of a chunk in their order, each product and sum with one rounding (the only kernels that
// contract), and a second launch adds the chunks in theirs. Chunks depend on rows and widths alone.
struct WeightGradientSizes {
  std::int64_t rows, in, out;
  bool bias;

  // Numbers of y.
  TPUDIST_ON_DEVICE std::int64_t numbers() const { return (in + (bias ? 1 : 0)) * out; }
  std::int64_t chunk_rows() const;
  std::int64_t chunks() const;
};
// `parts` [chunks, numbers()] for each member; not used where there is one chunk.
void launch_weight_gradient(const WeightGradientSizes& sizes, std::int64_t members,
                            Planes<const float> x, Planes<const float> d_y, Planes<float> y,
                            Planes<float> parts, CUstream_st* stream);

// A matrix of double for each member: element (i, j) of the first is data[i * row + j * column].
struct StridedPlanes {
  Planes<const double> planes;
  std::int64_t row, column;
};
// y = a b, a [rows, inner], b [inner, columns.width] and y dense: one thread adds the products of an
// element in their order. For what is small, heads and tests.
void launch_double_product(std::int64_t rows, std::int64_t inner, Columns columns, StridedPlanes a,
                           StridedPlanes b, Planes<double> y, CUstream_st* stream);

}  // namespace tpudist
