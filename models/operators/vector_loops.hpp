#pragma once

#include <array>
#include <cstdint>

#include "core/philox.hpp"

namespace tpudist {

// Loops over the channels of one row for norms, vectorised for float32 and plain for double. Sums
// are in double. All arrays are `width` numbers long.

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

// Loops over the channels of one row for the softmax gate, vectorised for float32 and plain for
// double. y = [x, x s], where s is the softmax of x / temperature. y and d_y are 2 x width numbers
// long, d_y = [d, e]; all other arrays `width`.

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

// Philox4x32-10 (core/philox.hpp) of several counters, one for each lane. The counters differ only
// in the last word, and the lanes are computed together. bits[w][lane] is word w of a lane.
inline constexpr int kPhiloxLanes = 16;
using PhiloxWords = std::array<std::array<std::uint32_t, kPhiloxLanes>, 4>;
void philox(const std::array<std::uint32_t, 4>& counter, PhiloxKey key, PhiloxWords& bits);

// y[i] = x[i] * 0 where the 16 bits of words[i] that start at bit `shift` are below `limit`,
// otherwise x[i] * scale.
void keep_lanes(const std::uint32_t* words, int shift, std::uint32_t limit, const float* x,
                float scale, int count, float* y);
void keep_lanes(const std::uint32_t* words, int shift, std::uint32_t limit, const double* x,
                double scale, int count, double* y);

}  // namespace tpudist
