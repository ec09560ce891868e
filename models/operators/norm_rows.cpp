#include "models/operators/norm_rows.hpp"

#include "models/kernels/vectorised.hpp"

namespace tpudist {

TPUDIST_VECTORISED
void NormRows<float>::add(const float* x, double count, std::int64_t width, double* sum) {
  for (std::int64_t c = 0; c < width; ++c) sum[c] += count * x[c];
}

TPUDIST_VECTORISED
void NormRows<float>::add_squares(const float* x, const double* centre, double count,
                                  std::int64_t width, double* sum) {
  for (std::int64_t c = 0; c < width; ++c) {
    const double o = x[c] - centre[c];
    sum[c] += count * o * o;
  }
}

TPUDIST_VECTORISED
void NormRows<float>::apply(const float* x, const float* centre, const float* factor,
                            std::int64_t width, float* y) {
  for (std::int64_t c = 0; c < width; ++c) y[c] = (x[c] - centre[c]) * factor[c];
}

TPUDIST_VECTORISED
void NormRows<float>::add_gradient(const float* x, const float* d_y, const float* centre,
                                   std::int64_t width, double* sum, double* with_o) {
  for (std::int64_t c = 0; c < width; ++c) {
    sum[c] += d_y[c];
    with_o[c] += static_cast<double>(d_y[c]) * (x[c] - centre[c]);
  }
}

TPUDIST_VECTORISED
void NormRows<float>::spread(const float* x, const float* d_y, const float* centre,
                             const float* factor, const float* along, const float* constant,
                             float count, std::int64_t width, float* d_x) {
  for (std::int64_t c = 0; c < width; ++c)
    d_x[c] = factor[c] * d_y[c] - count * (along[c] * (x[c] - centre[c]) + constant[c]);
}

void NormRows<double>::add(const double* x, double count, std::int64_t width, double* sum) {
  for (std::int64_t c = 0; c < width; ++c) sum[c] += count * x[c];
}

void NormRows<double>::add_squares(const double* x, const double* centre, double count,
                                   std::int64_t width, double* sum) {
  for (std::int64_t c = 0; c < width; ++c) {
    const double o = x[c] - centre[c];
    sum[c] += count * o * o;
  }
}

void NormRows<double>::apply(const double* x, const double* centre, const double* factor,
                             std::int64_t width, double* y) {
  for (std::int64_t c = 0; c < width; ++c) y[c] = (x[c] - centre[c]) * factor[c];
}

void NormRows<double>::add_gradient(const double* x, const double* d_y, const double* centre,
                                    std::int64_t width, double* sum, double* with_o) {
  for (std::int64_t c = 0; c < width; ++c) {
    sum[c] += d_y[c];
    with_o[c] += static_cast<double>(d_y[c]) * (x[c] - centre[c]);
  }
}

void NormRows<double>::spread(const double* x, const double* d_y, const double* centre,
                              const double* factor, const double* along, const double* constant,
                              double count, std::int64_t width, double* d_x) {
  for (std::int64_t c = 0; c < width; ++c)
    d_x[c] = factor[c] * d_y[c] - count * (along[c] * (x[c] - centre[c]) + constant[c]);
}

}  // namespace tpudist
