#include "models/operators/norm_rows.hpp"

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

}  // namespace tpudist
