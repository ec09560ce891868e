#pragma once

#include <algorithm>
#include <cstdint>

#include "models/kernels/row_kernels.hpp"
#include "models/plans/csr.hpp"

// Loops over a block of rows: in float32 with the vectorised kernels, and in double with plain
// loops, for tests and small tensors. All rows are `width` numbers long and contiguous. A block
// holds rows first .. first + count - 1; `y` begins at its first row, `x` at row 0 unless said
// otherwise. With K replicas row i is replica i % K of the matrix's row i / K.

namespace tpudist {

// y[i] = the sum of weight * x[source] over the entries of row i
inline void add_entries(const Csr& matrix, std::int64_t replicas, std::int64_t first,
                        std::int64_t count, const float* x, std::int64_t width, float* y) {
  spmm_rows(matrix, first, count, {x, width}, width, {y, width}, {.replicas = replicas});
}
inline void add_entries(const Csr& matrix, std::int64_t replicas, std::int64_t first,
                        std::int64_t count, const double* x, std::int64_t width, double* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = (first + i) / replicas, replica = (first + i) % replicas;
    std::fill_n(y + i * width, width, 0.0);
    for (std::int64_t e = matrix.begin[row]; e < matrix.begin[row + 1]; ++e) {
      const double* const in = x + (matrix.source[e] * replicas + replica) * width;
      const double weight = matrix.weight_of(e);
      for (std::int64_t c = 0; c < width; ++c) y[i * width + c] += weight * in[c];
    }
  }
}

// y[i] = x[taken[i]], or x[i] where `taken` is null and `x` begins at the block's first row
template <typename T>
void copy_taken(const T* x, const std::int32_t* taken, std::int64_t count, std::int64_t width,
                T* y) {
  for (std::int64_t i = 0; i < count; ++i)
    std::copy_n(x + (taken ? taken[i] : i) * width, width, y + i * width);
}
// y[i] += the same
template <typename T>
void add_taken(const T* x, const std::int32_t* taken, std::int64_t count, std::int64_t width,
               T* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T* const in = x + (taken ? taken[i] : i) * width;
    T* const __restrict out = y + i * width;
    for (std::int64_t c = 0; c < width; ++c) out[c] += in[c];
  }
}

// y[i] /= the sum of the weights of row i; rows without entries stay as they are
template <typename T>
void divide_by_totals(const Csr& matrix, std::int64_t replicas, std::int64_t first,
                      std::int64_t count, std::int64_t width, T* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double total = matrix.total_weight((first + i) / replicas);
    if (total <= 1) continue;
    for (std::int64_t c = 0; c < width; ++c) y[i * width + c] /= static_cast<T>(total);
  }
}

// spmm_max_rows, spmm_max_shares and spmm_max_backward_rows: calls for float32, plain loops for
// double.
inline void segment_max(const Csr& matrix, std::int64_t replicas, std::int64_t first,
                        std::int64_t count, const float* x, std::int64_t width, float* y) {
  spmm_max_rows(matrix, first, count, {x, width}, width, {y, width}, replicas);
}
void segment_max(const Csr& matrix, std::int64_t replicas, std::int64_t first, std::int64_t count,
                 const double* x, std::int64_t width, double* y);

inline void share_of_largest(const Csr& matrix, std::int64_t replicas, std::int64_t first,
                             std::int64_t count, const float* x, const float* best,
                             std::int64_t width, float* share) {
  spmm_max_shares(matrix, first, count, {x, width}, {best, width}, width, {share, width}, replicas);
}
void share_of_largest(const Csr& matrix, std::int64_t replicas, std::int64_t first,
                      std::int64_t count, const double* x, const double* best, std::int64_t width,
                      double* share);

// `x` begins at the block's first row.
inline void gradient_of_largest(const Csr& transposed, std::int64_t replicas, std::int64_t first,
                                std::int64_t count, const float* x, const float* best,
                                const float* share, std::int64_t width, float* y) {
  spmm_max_backward_rows(transposed, first, count, {x, width}, {best, width}, {share, width}, width,
                         {y, width}, {.replicas = replicas});
}
void gradient_of_largest(const Csr& transposed, std::int64_t replicas, std::int64_t first,
                         std::int64_t count, const double* x, const double* best,
                         const double* share, std::int64_t width, double* y);

}  // namespace tpudist
