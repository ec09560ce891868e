#pragma once

#include <cstdint>

// Loops over the channels of one row for the softmax gate, vectorised for float32 and plain for
// double. y = [x, x s], where s is the softmax of x / temperature. y and d_y are 2 x width numbers
// long, d_y = [d, e]; all other arrays `width`.

namespace tpudist {

template <typename T>
struct GateRows;

#define TPUDIST_GATE_ROWS(T)                                                                       \
  template <>                                                                                      \
  struct GateRows<T> {                                                                             \
    /* top = the x of the largest x * inverse so far; `inverse` may be negative */                 \
    static void raise(const T* x, const T* inverse, std::int64_t width, T* top);                   \
    /* logit = (x - top) * inverse */                                                              \
    static void logits(const T* x, const T* top, const T* inverse, std::int64_t width, T* logit);  \
    /* sum += count * power */                                                                     \
    static void add(const T* power, double count, std::int64_t width, double* sum);                \
    /* share = power * inverse; y = [x, x * share] */                                              \
    static void apply(const T* x, const T* power, const T* inverse, std::int64_t width, T* share,  \
                      T* y);                                                                       \
    /* sum += share * e * x */                                                                     \
    static void add_gradient(const T* x, const T* share, const T* d_y, std::int64_t width,         \
                             double* sum);                                                         \
    /* l = share * (e * x - count * whole); */                                                     \
    /* d_x = d + e * share + l * inverse; d_inverse += l * x */                                    \
    static void spread(const T* x, const T* share, const T* d_y, const T* whole, const T* inverse, \
                       T count, std::int64_t width, T* d_x, double* d_inverse);                    \
  }

TPUDIST_GATE_ROWS(float);
TPUDIST_GATE_ROWS(double);
#undef TPUDIST_GATE_ROWS

}  // namespace tpudist
