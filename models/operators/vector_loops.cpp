#include "models/operators/vector_loops.hpp"

#include <algorithm>

#include "models/kernels/vectorised.hpp"

namespace tpudist {

#define TPUDIST_NORM_ROWS(T, MARK)                                                               \
  MARK void NormRows<T>::add(const T* x, double count, std::int64_t width, double* sum) {        \
    for (std::int64_t c = 0; c < width; ++c) sum[c] += count * x[c];                             \
  }                                                                                              \
  MARK void NormRows<T>::add_squares(const T* x, const double* centre, double count,             \
                                     std::int64_t width, double* sum) {                          \
    for (std::int64_t c = 0; c < width; ++c) {                                                   \
      const double o = x[c] - centre[c];                                                         \
      sum[c] += count * o * o;                                                                   \
    }                                                                                            \
  }                                                                                              \
  MARK void NormRows<T>::apply(const T* x, const T* centre, const T* factor, std::int64_t width, \
                               T* y) {                                                           \
    for (std::int64_t c = 0; c < width; ++c) y[c] = (x[c] - centre[c]) * factor[c];              \
  }                                                                                              \
  MARK void NormRows<T>::add_gradient(const T* x, const T* d_y, const T* centre,                 \
                                      std::int64_t width, double* sum, double* with_o) {         \
    for (std::int64_t c = 0; c < width; ++c) {                                                   \
      sum[c] += d_y[c];                                                                          \
      with_o[c] += static_cast<double>(d_y[c]) * (x[c] - centre[c]);                             \
    }                                                                                            \
  }                                                                                              \
  MARK void NormRows<T>::spread(const T* x, const T* d_y, const T* centre, const T* factor,      \
                                const T* along, const T* constant, T count, std::int64_t width,  \
                                T* d_x) {                                                        \
    for (std::int64_t c = 0; c < width; ++c)                                                     \
      d_x[c] = factor[c] * d_y[c] - count * (along[c] * (x[c] - centre[c]) + constant[c]);       \
  }

TPUDIST_NORM_ROWS(float, TPUDIST_VECTORISED)
TPUDIST_NORM_ROWS(double, )
#undef TPUDIST_NORM_ROWS

// Too many arrays for the compiler to check that none overlaps another.
#define TPUDIST_GATE_ROWS(T, MARK)                                                               \
  MARK void GateRows<T>::raise(const T* x, const T* inverse, std::int64_t width, T* top) {       \
    for (std::int64_t c = 0; c < width; ++c) {                                                   \
      const T low = std::min(top[c], x[c]), high = std::max(top[c], x[c]);                       \
      top[c] = inverse[c] < 0 ? low : high;                                                      \
    }                                                                                            \
  }                                                                                              \
  MARK void GateRows<T>::logits(const T* x, const T* top, const T* inverse, std::int64_t width,  \
                                T* logit) {                                                      \
    for (std::int64_t c = 0; c < width; ++c) logit[c] = (x[c] - top[c]) * inverse[c];            \
  }                                                                                              \
  MARK void GateRows<T>::add(const T* power, double count, std::int64_t width, double* sum) {    \
    for (std::int64_t c = 0; c < width; ++c) sum[c] += count * power[c];                         \
  }                                                                                              \
  MARK void GateRows<T>::apply(const T* x, const T* power, const T* inverse, std::int64_t width, \
                               T* share, T* y) {                                                 \
    _Pragma("GCC ivdep") for (std::int64_t c = 0; c < width; ++c) {                              \
      share[c] = power[c] * inverse[c];                                                          \
      y[c] = x[c];                                                                               \
      y[width + c] = x[c] * share[c];                                                            \
    }                                                                                            \
  }                                                                                              \
  MARK void GateRows<T>::add_gradient(const T* x, const T* share, const T* d_y,                  \
                                      std::int64_t width, double* sum) {                         \
    for (std::int64_t c = 0; c < width; ++c)                                                     \
      sum[c] += static_cast<double>(share[c]) * d_y[width + c] * x[c];                           \
  }                                                                                              \
  MARK void GateRows<T>::spread(const T* x, const T* share, const T* d_y, const T* whole,        \
                                const T* inverse, T count, std::int64_t width, T* d_x,           \
                                double* d_inverse) {                                             \
    _Pragma("GCC ivdep") for (std::int64_t c = 0; c < width; ++c) {                              \
      const T d_gated = d_y[width + c];                                                          \
      const T d_logit = share[c] * (d_gated * x[c] - count * whole[c]);                          \
      d_x[c] = d_y[c] + (d_gated * share[c] + d_logit * inverse[c]);                             \
      d_inverse[c] += static_cast<double>(d_logit) * x[c];                                       \
    }                                                                                            \
  }

TPUDIST_GATE_ROWS(float, TPUDIST_VECTORISED)
TPUDIST_GATE_ROWS(double, )
#undef TPUDIST_GATE_ROWS

// All rounds of a lane in one iteration, so that its words stay in registers: 3.5 times as fast
// with AVX2 as a loop over the lanes for each round.
TPUDIST_VECTORISED
void philox(const std::array<std::uint32_t, 4>& counter, PhiloxKey key, PhiloxWords& bits) {
  for (int lane = 0; lane < kPhiloxLanes; ++lane) {
    std::uint64_t w0 = counter[0], w1 = counter[1], w2 = counter[2],
                  w3 = counter[3] + static_cast<std::uint32_t>(lane);
    PhiloxKey own = key;
#pragma GCC unroll 10
    for (int round = 0; round < kPhiloxRounds; ++round, own.advance())
      philox_round(w0, w1, w2, w3, own);
    bits[0][lane] = static_cast<std::uint32_t>(w0);
    bits[1][lane] = static_cast<std::uint32_t>(w1);
    bits[2][lane] = static_cast<std::uint32_t>(w2);
    bits[3][lane] = static_cast<std::uint32_t>(w3);
  }
}

TPUDIST_VECTORISED
void keep_lanes(const std::uint32_t* words, int shift, std::uint32_t limit, const float* x,
                float scale, int count, float* y) {
  for (int i = 0; i < count; ++i) {
    const std::uint32_t value = (words[i] >> shift) & 0xFFFFu;
    // A product, so that NaN stays NaN when it is dropped, as in PyTorch.
    y[i] = x[i] * (value < limit ? 0.0f : scale);
  }
}

void keep_lanes(const std::uint32_t* words, int shift, std::uint32_t limit, const double* x,
                double scale, int count, double* y) {
  for (int i = 0; i < count; ++i)
    y[i] = x[i] * (((words[i] >> shift) & 0xFFFFu) < limit ? 0.0 : scale);
}

}  // namespace tpudist
