#include "models/kernels/flat_launches.hpp"

#include "models/kernels/cuda_rows.hpp"

namespace tpudist {
namespace {

constexpr std::int64_t kWidth = cuda_rows::kThreads;

// Elements as rows of kWidth.
struct LeafSums {
  std::int64_t length;
  const std::int32_t *begin, *sum, *pairs;
  float *leaves, *sums;

  __device__ void select(std::int64_t member) {
    begin += member;
    sum += member;
    sums += member * length;
  }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * kWidth + column;
    if (i >= length) return;
    for (std::int32_t a = begin[0]; a < begin[1]; ++a) {
      float* const left = leaves + pairs[2 * a] * length + i;
      *left = *left + leaves[pairs[2 * a + 1] * length + i];
    }
    sums[i] = sum[0] < 0 ? 0.0f : leaves[sum[0] * length + i];
  }
};

// Copies rows to slices, or slices to rows if `row_of` is null. Each row takes the place of a
// member in other kernels; its elements are rows of kWidth.
struct Slices {
  std::int64_t count, length, sliced, slice;
  const std::int32_t* row_of;
  const float* from;
  float* to;
  std::int64_t slot = 0;

  __device__ void select(std::int64_t member) { slot = member; }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * kWidth + column;
    if (i >= sliced) return;
    const std::int64_t in_slices = (i / slice * count + slot) * slice + i % slice;
    if (row_of) {
      to[in_slices] = i < length ? from[row_of[slot] * length + i] : 0.0f;
    } else {
      to[slot * length + i] = from[in_slices];
    }
  }
};

struct PutValues {
  const std::int32_t* row_of;
  const float* values;
  std::int64_t length, at;
  float* rows;

  __device__ void select(std::int64_t) {}
  template <int N>
  __device__ void run(std::int64_t i, std::int64_t) const {
    rows[row_of[i] * length + at] = values[i];
  }
};

std::int64_t rows_of(std::int64_t length) {
  return (length + kWidth - 1) / kWidth;
}

}  // namespace

void launch_leaf_sums(int members, std::int64_t length, const std::int32_t* plan, float* leaves,
                      float* sums, CUstream_st* stream) {
  const LeafSums work{length, plan, plan + members + 1, plan + 2 * members + 1, leaves, sums};
  cuda_rows::launch<1>(rows_of(length), {kWidth, members}, work, stream);
}

void launch_rows_to_slices(std::int64_t count, std::int64_t length, int ranks, std::int64_t slice,
                           const std::int32_t* row_of, const float* rows, float* slices,
                           CUstream_st* stream) {
  const Slices work{count, length, ranks * slice, slice, row_of, rows, slices};
  cuda_rows::launch<1>(rows_of(work.sliced), {kWidth, count}, work, stream);
}

void launch_slices_to_rows(std::int64_t count, std::int64_t length, std::int64_t slice,
                           const float* slices, float* rows, CUstream_st* stream) {
  const Slices work{count, length, length, slice, nullptr, slices, rows};
  cuda_rows::launch<1>(rows_of(length), {kWidth, count}, work, stream);
}

void launch_put_values(std::int64_t count, const std::int32_t* row_of, const float* values,
                       std::int64_t length, std::int64_t at, float* rows, CUstream_st* stream) {
  cuda_rows::launch<1>(count, {1, 1}, PutValues{row_of, values, length, at, rows}, stream);
}

}  // namespace tpudist
