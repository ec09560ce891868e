#include "models/losses/diff_mat.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace tpudist {

DiffMat::DiffMat(double margin, double scale) : margin_(margin), scale_(scale) {
  if (!(margin >= 0) || std::isinf(margin))
    throw ConfigError("diff_mat: margin must be finite and 0 or more");
  if (!(scale > 0) || std::isinf(scale))
    throw ConfigError("diff_mat: scale must be finite and greater than 0");
}

SlateLoss::Value DiffMat::evaluate(std::span<const double> scores, std::span<const double> targets,
                                   std::uint64_t, std::span<double> gradient) const {
  check_slate("diff_mat", scores, targets, gradient);
  std::ranges::fill(gradient, 0.0);
  const std::size_t n = scores.size();
  if (n < 2) return {};
  const double share = scale_ / (static_cast<double>(n) * static_cast<double>(n - 1) / 2);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      const double sign = (targets[j] > targets[i]) - (targets[j] < targets[i]);
      const double value = margin_ - sign * (scores[j] - scores[i]);
      if (value < 0) continue;  // NaN continues
      sum += value;
      gradient[j] -= sign;
      gradient[i] += sign;
    }
  }
  for (double& g : gradient) g *= share;
  return {share * sum, true};
}

}  // namespace tpudist
