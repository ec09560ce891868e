#include "models/kernels/flat_launches.hpp"

#include "models/kernels/cuda_rows.hpp"

namespace tpudist {
namespace {

constexpr std::int64_t kWidth = cuda_rows::kThreads;

// Rows are parts, and columns the lanes in which the host adds too.
struct SquaredSums {
  const NormPart* parts;
  std::int64_t count, stride, length;
  const float *gradients, *flat;
  LaneSums* sums;

  __device__ void select(std::int64_t member) {
    gradients += member * stride;
    flat += member * length;
    sums += member * count * kNormLanes;
  }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t lane) const {
    const NormPart part = parts[row];
    const float* const values = gradients + part.begin;
    const std::int64_t size = part.end - part.begin;
    LaneSums sum;
#pragma unroll 16
    for (std::int64_t i = lane; i < size; i += kNormLanes) {
      const float gradient = __ldg(values + i);
      const double value = gradient;
      sum.squares += value * value;
      const auto odd = 2 * static_cast<std::uint64_t>(part.begin + i) + 1;
      sum.bits += odd * 0x9e3779b97f4a7c15 * __float_as_uint(gradient);
      sum.bits += odd * 0xc2b2ae3d27d4eb4f * __float_as_uint(__ldg(flat + part.begin + i));
    }
    sums[row * kNormLanes + lane] = sum;
  }
};

// Calls `take` with each block and the sum of its parts.
template <typename Take>
__device__ void for_blocks(const NormPart* parts, std::int64_t count, const LaneSums* sums,
                           const Take& take) {
  double of_block = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const LaneSums* const lanes = sums + i * kNormLanes;
    const auto pair = [&](int l) { return lanes[l].squares + lanes[l + 4].squares; };
    of_block += (pair(0) + pair(1)) + (pair(2) + pair(3));
    if (i + 1 < count && parts[i + 1].block == parts[i].block) continue;
    take(parts[i].block, of_block);
    of_block = 0;
  }
}

// One thread for a member.
struct LossAndNorm {
  const NormPart* parts;
  std::int64_t count, stride, length;
  const float* gradients;
  const LaneSums* sums;
  MemberTotals* totals;

  __device__ void select(std::int64_t member) {
    gradients += member * stride;
    sums += member * count * kNormLanes;
    totals += member;
  }
  template <int N>
  __device__ void run(std::int64_t, std::int64_t) const {
    double total = 0;
    for_blocks(parts, count, sums, [&](std::int64_t, double of_block) { total += of_block; });
    std::uint64_t bits = 0;
    for (std::int64_t i = 0; i < count * kNormLanes; ++i) bits += sums[i].bits;
    *totals = {gradients[length], sqrt(total), bits};
  }
};

// As SquaredSums, of the gradients plus the decay if the decay is clipped too.
struct TensorSums {
  TensorClip clip;
  const float *flat, *gradients;
  const FlatPlace* places;
  std::int64_t length, stride;
  const StepCoefficients* coefficients;
  int groups;

  __device__ void select(std::int64_t member) {
    flat += member * length;
    gradients += member * stride;
    coefficients += member * groups;
    clip.sums += member * clip.count * kNormLanes;
  }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t lane) const {
    const NormPart part = clip.parts[row];
    const float l2 = clip.decay_clipped ? coefficients[places[part.begin / 16].group].l2 : 0.0f;
    double sum = 0;
    for (std::int64_t i = part.begin + lane; i < part.end; i += kNormLanes) {
      const double value = gradients[i] + l2 * flat[i];
      sum += value * value;
    }
    clip.sums[row * kNormLanes + lane] = {sum, 0};
  }
};

// One thread for a member.
struct TensorScales {
  TensorClip clip;

  __device__ void select(std::int64_t member) {
    clip.sums += member * clip.count * kNormLanes;
    clip.scales += member * clip.tensors;
  }
  template <int N>
  __device__ void run(std::int64_t, std::int64_t) const {
    for_blocks(clip.parts, clip.count, clip.sums, [&](std::int64_t tensor, double sum) {
      const double scale = clip.largest / (sqrt(sum) + 1e-6);
      clip.scales[tensor] = static_cast<float>(scale < 1.0 ? scale : 1.0);
    });
  }
};

// Elements as rows of kWidth.
struct OptimizerStep {
  SteppedBuffers to;
  const float* gradients;
  std::int64_t stride;
  const StepCoefficients* coefficients;
  int groups;
  TensorClip clip;

  __device__ void select(std::int64_t member) {
    to.flat += member * to.length;
    to.first += member * to.length;
    to.second += member * to.length;
    to.placed += member * to.placed_length;
    gradients += member * stride;
    coefficients += member * groups;
    clip.scales += member * clip.tensors;
  }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * kWidth + column;
    if (i >= to.length) return;
    const FlatPlace place = to.places[i / 16];
    const StepCoefficients& c = coefficients[place.group];
    if (c.takes_step == 0) return;
    float scale = c.gradient_scale, l2 = c.l2;
    if (clip.largest > 0) {
      scale = clip.scales[place.tensor];
      if (clip.decay_clipped) l2 *= scale;
    }
    const float parameter = to.flat[i];
    const float shrunk = parameter * c.shrink;
    const float g = gradients[i] * scale + l2 * parameter;
    const float m = to.first[i] + c.one_minus_beta1 * (g - to.first[i]);
    const float v = to.second[i] * c.beta2 + c.one_minus_beta2 * g * g;
    const float denominator = sqrtf(v) / c.root_of_correction2 + c.eps;
    const float stepped = shrunk + c.minus_step_size * m / denominator;
    to.first[i] = m;
    to.second[i] = v;
    to.flat[i] = stepped;
    to.placed[place.placed + i % 16] = stepped;
  }
};

struct AveragePoint {
  std::int64_t length;
  const float *shares, *flat;
  float* average;

  __device__ void select(std::int64_t member) {
    shares += member;
    flat += member * length;
    average += member * length;
  }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * kWidth + column;
    if (i >= length || shares[0] == 0) return;
    average[i] += shares[0] * (flat[i] - average[i]);
  }
};

std::int64_t rows_of(std::int64_t length) {
  return (length + kWidth - 1) / kWidth;
}

}  // namespace

void launch_losses_and_norms(int members, std::int64_t length, const NormPart* parts,
                             std::int64_t count, const float* gradients, std::int64_t stride,
                             const float* flat, LaneSums* sums, MemberTotals* totals,
                             CUstream_st* stream) {
  cuda_rows::launch<1>(count, {kNormLanes, members},
                       SquaredSums{parts, count, stride, length, gradients, flat, sums}, stream);
  cuda_rows::launch<1>(1, {1, members},
                       LossAndNorm{parts, count, stride, length, gradients, sums, totals}, stream);
}

void launch_optimizer_step(int members, const SteppedBuffers& buffers, const float* gradients,
                           std::int64_t stride, const StepCoefficients* coefficients, int groups,
                           const TensorClip& clip, CUstream_st* stream) {
  if (clip.largest > 0) {
    const TensorSums sums{clip,           buffers.flat, gradients,    buffers.places,
                          buffers.length, stride,       coefficients, groups};
    cuda_rows::launch<1>(clip.count, {kNormLanes, members}, sums, stream);
    cuda_rows::launch<1>(1, {1, members}, TensorScales{clip}, stream);
  }
  cuda_rows::launch<1>(rows_of(buffers.length), {kWidth, members},
                       OptimizerStep{buffers, gradients, stride, coefficients, groups, clip},
                       stream);
}

void launch_average_point(int members, std::int64_t length, const float* shares, const float* flat,
                          float* average, CUstream_st* stream) {
  cuda_rows::launch<1>(rows_of(length), {kWidth, members},
                       AveragePoint{length, shares, flat, average}, stream);
}

}  // namespace tpudist
