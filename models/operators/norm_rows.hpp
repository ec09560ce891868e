#pragma once

#include <cstdint>

// Loops over the channels of one row for norms, vectorised for float32 and plain for double. Sums
// are in double. All arrays are `width` numbers long.

namespace tpudist {

template <typename T>
struct NormRows;

#define TPUDIST_NORM_ROWS(T)                                                                       \
  template <>                                                                                      \
  struct NormRows<T> {                                                                             \
    /* sum += count * x */                                                                         \
    static void add(const T* x, double count, std::int64_t width, double* sum);                    \
    /* sum += count * (x - centre)^2 */                                                            \
    static void add_squares(const T* x, const double* centre, double count, std::int64_t width,    \
                            double* sum);                                                          \
    /* y = (x - centre) * factor */                                                                \
    static void apply(const T* x, const T* centre, const T* factor, std::int64_t width, T* y);     \
    /* sum += d_y; with_o += d_y * (x - centre) */                                                 \
    static void add_gradient(const T* x, const T* d_y, const T* centre, std::int64_t width,        \
                             double* sum, double* with_o);                                         \
    /* d_x = factor * d_y - count * (along * (x - centre) + constant) */                           \
    static void spread(const T* x, const T* d_y, const T* centre, const T* factor, const T* along, \
                       const T* constant, T count, std::int64_t width, T* d_x);                    \
  }

TPUDIST_NORM_ROWS(float);
TPUDIST_NORM_ROWS(double);
#undef TPUDIST_NORM_ROWS

}  // namespace tpudist
