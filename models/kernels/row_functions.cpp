#include "models/kernels/row_functions.hpp"

#include <bit>
#include <cstdint>
#include <limits>

#include "models/kernels/vectorised.hpp"

namespace tpudist {
namespace {

// Everything here is inlined into the loops below, whose vectors go over the numbers.
#define TPUDIST_INLINE inline __attribute__((always_inline))

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TPUDIST_INLINE std::int32_t bits_of(float x) {
  return std::bit_cast<std::int32_t>(x);
}
TPUDIST_INLINE float of_bits(std::int32_t bits) {
  return std::bit_cast<float>(bits);
}

// exp(x) = 2^n (1 + tail), |x - n ln 2| <= ln 2 / 2, for -104 <= x <= 89.
struct Power {
  float tail;
  std::int32_t n;
};

TPUDIST_INLINE Power power_of(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: a sum with it is rounded to an integer
  const float shifted = x * 1.44269504f + kRound, n = shifted - kRound;
  // ln 2 in two parts; n times the first part is exact.
  const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  // Taylor's series of (exp(r) - 1 - r) / r^2; the next term is below 1e-9.
  float sum = 1.0f / 40320;
  sum = sum * r + 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  return {r + r * r * sum, bits_of(shifted) - bits_of(kRound)};
}

// 2^n for -126 <= n <= 127.
TPUDIST_INLINE float power_of_two(std::int32_t n) {
  return of_bits((n + 127) << 23);
}

TPUDIST_INLINE float exp_of(float x) {
  const float within = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
  const Power power = power_of(within == within ? within : 0.0f);
  // In two steps, since 2^n itself may be out of range.
  const std::int32_t half = power.n >> 1;
  const float y = (1 + power.tail) * power_of_two(half) * power_of_two(power.n - half);
  return x == x ? y : x;
}

TPUDIST_INLINE float log1p_of(float x) {
  const float u = 1 + x;
  // u = 2^e m with m from 0.707 to 1.414. For small x, m - 1 is x.
  const std::int32_t e = (bits_of(u) - bits_of(0.707106781f)) >> 23;
  const float m = of_bits(bits_of(u) - (e << 23));
  const float above = e == 0 ? x : m - 1;
  const float s = above / (2 + above), q = s * s;
  // 2 artanh(s); the next term is below 1e-9.
  float sum = 2.0f / 9;
  sum = sum * q + 2.0f / 7;
  sum = sum * q + 2.0f / 5;
  sum = sum * q + 2.0f / 3;
  const float log_m = 2 * s + s * q * sum;
  const float lost = e == 0 ? 0.0f : (x - (u - 1)) / u;
  const auto n = static_cast<float>(e);
  const float y = n * 0.693145752f + (log_m + (n * 1.42860677e-6f + lost));
  return x < kInfinity ? y : x;  // infinity and NaN too
}

TPUDIST_INLINE float sigmoid_of(float x) {
  return 1 / (1 + exp_of(-x));
}

// The normal distribution at x: its density and its CDF. The polynomial in 1 / (1 + 0.35 |x|) was
// fitted to CDF(-|x|) / exp(-x^2 / 2) with a relative error below 4e-8 up to |x| = 13.
struct Normal {
  float density, cdf;
};

TPUDIST_INLINE Normal normal_at(float x) {
  const float size = x < 0 ? -x : x, bell = exp_of(-0.5f * (size * size));
  const float t = 1 / (1 + 0.35f * size);
  float sum = -0.0291088885f;
  sum = sum * t + 0.143788014f;
  sum = sum * t - 0.255326839f;
  sum = sum * t + 0.158721517f;
  sum = sum * t - 0.0227904082f;
  sum = sum * t + 0.105369053f;
  sum = sum * t + 0.119869124f;
  sum = sum * t + 0.1398567f;
  sum = sum * t + 0.139621712f;
  const float tail = sum * t * bell;
  return {0.398942280f * bell, x < 0 ? tail : 1 - tail};
}

// The approximation of the CDF: sigmoid(2 k (x + 0.044715 x^3)), k = sqrt(2 / pi).
constexpr float kSlope = 1.59576912f, kCubic = 0.044715f;

TPUDIST_INLINE float gelu_tanh_gate(float x) {
  return sigmoid_of(kSlope * (x + kCubic * (x * x * x)));
}

}  // namespace

TPUDIST_VECTORISED
void exp_values(const float* x, std::int64_t n, float* y) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = exp_of(x[i]);
}

TPUDIST_VECTORISED
void log1p_values(const float* x, std::int64_t n, float* y) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = log1p_of(x[i]);
}

TPUDIST_VECTORISED
void sigmoid_values(const float* x, std::int64_t n, float* y) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = sigmoid_of(x[i]);
}

TPUDIST_VECTORISED
void gelu_values(const float* x, std::int64_t n, float* y) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * normal_at(x[i]).cdf;
}

TPUDIST_VECTORISED
void gelu_gradient(const float* x, const float* d_y, std::int64_t n, float* d_x) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const Normal normal = normal_at(x[i]);
    d_x[i] = d_y[i] * (normal.cdf + x[i] * normal.density);
  }
}

TPUDIST_VECTORISED
void gelu_tanh_values(const float* x, std::int64_t n, float* y) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * gelu_tanh_gate(x[i]);
}

TPUDIST_VECTORISED
void gelu_tanh_gradient(const float* x, const float* d_y, std::int64_t n, float* d_x) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const float gate = gelu_tanh_gate(x[i]),
                slope = kSlope * (1 + 3 * kCubic * (x[i] * x[i])) * (gate * (1 - gate));
    d_x[i] = d_y[i] * (gate + x[i] * slope);
  }
}

TPUDIST_VECTORISED
void silu_values(const float* x, std::int64_t n, float* y) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * sigmoid_of(x[i]);
}

TPUDIST_VECTORISED
void silu_gradient(const float* x, const float* d_y, std::int64_t n, float* d_x) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const float gate = sigmoid_of(x[i]);
    d_x[i] = d_y[i] * (gate * (1 + x[i] * (1 - gate)));
  }
}

TPUDIST_VECTORISED
void elu_values(const float* x, std::int64_t n, float* y) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const float within = x[i] < -20.0f ? -20.0f : x[i] > 0 ? 0.0f : x[i];
    const Power power = power_of(within == within ? within : 0.0f);
    const float scale = power_of_two(power.n), below = scale * power.tail + (scale - 1);
    y[i] = x[i] <= 0 ? below : x[i];  // NaN too
  }
}

TPUDIST_VECTORISED
void elu_gradient(const float* x, const float* d_y, std::int64_t n, float* d_x) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const float below = exp_of(x[i]);
    d_x[i] = d_y[i] * (x[i] > 0 ? 1.0f : below);
  }
}

}  // namespace tpudist
