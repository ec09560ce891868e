#include "models/kernels/leaf_sums.hpp"

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

}  // namespace

void launch_leaf_sums(int members, std::int64_t length, const std::int32_t* plan, float* leaves,
                      float* sums, CUstream_st* stream) {
  const LeafSums work{length, plan, plan + members + 1, plan + 2 * members + 1, leaves, sums};
  cuda_rows::launch<1>((length + kWidth - 1) / kWidth, {kWidth, members}, work, stream);
}

}  // namespace tpudist
