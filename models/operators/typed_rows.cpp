#include "models/operators/typed_rows.hpp"

#include <cmath>

namespace tpudist {

void segment_max(const Csr& matrix, std::int64_t replicas, std::int64_t first, std::int64_t count,
                 const double* x, std::int64_t width, double* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = (first + i) / replicas, replica = (first + i) % replicas;
    const std::int64_t begin = matrix.begin[row], end = matrix.begin[row + 1];
    for (std::int64_t c = 0; c < width; ++c) {
      double& best = y[i * width + c] = 0;
      for (std::int64_t e = begin; e < end; ++e) {
        const double value = x[(matrix.source[e] * replicas + replica) * width + c];
        if (e == begin || value > best || std::isnan(value)) best = value;
      }
    }
  }
}

void share_of_largest(const Csr& matrix, std::int64_t replicas, std::int64_t first,
                      std::int64_t count, const double* x, const double* best, std::int64_t width,
                      double* share) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = (first + i) / replicas, replica = (first + i) % replicas;
    for (std::int64_t c = 0; c < width; ++c) {
      double ties = 0;
      for (std::int64_t e = matrix.begin[row]; e < matrix.begin[row + 1]; ++e) {
        const double value = x[(matrix.source[e] * replicas + replica) * width + c];
        if (value == best[i * width + c]) ties += matrix.weight_of(e);
      }
      share[i * width + c] = ties > 0 ? share[i * width + c] / ties : 0;
    }
  }
}

void gradient_of_largest(const Csr& transposed, std::int64_t replicas, std::int64_t first,
                         std::int64_t count, const double* x, const double* best,
                         const double* share, std::int64_t width, double* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = (first + i) / replicas, replica = (first + i) % replicas;
    for (std::int64_t c = 0; c < width; ++c) {
      double& sum = y[i * width + c] = 0;
      for (std::int64_t e = transposed.begin[row]; e < transposed.begin[row + 1]; ++e) {
        const std::int64_t at = (transposed.source[e] * replicas + replica) * width + c;
        if (x[i * width + c] == best[at]) sum += transposed.weight_of(e) * share[at];
      }
    }
  }
}

}  // namespace tpudist
