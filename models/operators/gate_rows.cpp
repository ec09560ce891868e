#include "models/operators/gate_rows.hpp"

#include <algorithm>

#include "models/kernels/vectorised.hpp"

namespace tpudist {

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

}  // namespace tpudist
