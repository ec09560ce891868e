#include "models/bf16_gemm.hpp"

#include <algorithm>
#include <utility>

#include "core/aligned.hpp"
#include "models/row_kernels.hpp"

namespace tpudist {
namespace {

// A copy of x [rows, columns] as it lies in memory, rounded to bf16.
MatrixView rounded(const MatrixView& x, std::int64_t rows, std::int64_t columns,
                   AlignedFloats& copy) {
  if (x.transpose == Transpose::yes) std::swap(rows, columns);
  const std::int64_t stride = std::max<std::int64_t>(pad16(columns), 16);  // BLAS wants no 0
  if (static_cast<std::int64_t>(copy.size()) < rows * stride) copy = AlignedFloats(rows * stride);
  round_rows({x.data, x.stride}, rows, columns, {copy.data(), stride});
  return {copy.data(), stride, x.transpose};
}

}  // namespace

void gemm_of_rounded(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                     float beta, float* c, std::int64_t c_stride) {
  thread_local AlignedFloats left, right;
  gemm(m, n, k, rounded(a, m, k, left), rounded(b, k, n, right), beta, c, c_stride);
}

}  // namespace tpudist
