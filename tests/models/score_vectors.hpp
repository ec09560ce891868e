#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <span>
#include <vector>

#include "models/plans/plan.hpp"

namespace tpudist::test {

inline double norm(std::span<const double> x) {
  double square = 0;
  for (const double v : x) square += v * v;
  return std::sqrt(square);
}

inline double distance(std::span<const double> a, std::span<const double> b) {
  std::vector<double> difference(a.begin(), a.end());
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= b[i];
  return norm(difference);
}

inline std::vector<double> values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

// One number for each configuration of a plan minus the mean of its slate, as a ranking sees it.
inline std::vector<double> centred(std::vector<double> scores, const Plan& plan) {
  std::vector<double> sum(plan.readout.common.forward.rows()), count(sum.size());
  for (std::size_t k = 0; k < scores.size(); ++k) {
    sum[plan.readout.slate_of_config[k]] += scores[k];
    count[plan.readout.slate_of_config[k]] += 1;
  }
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const std::int32_t slate = plan.readout.slate_of_config[k];
    scores[k] -= sum[slate] / count[slate];
  }
  return scores;
}

}  // namespace tpudist::test
