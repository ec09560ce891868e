#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "models/losses/slate_loss.hpp"

namespace tpudist {

// The largest difference between the gradient of a loss and central differences of its values.
inline double gradient_error(const SlateLoss& loss, std::vector<double> scores,
                             const std::vector<double>& targets, std::uint64_t tie_key = 1) {
  constexpr double step = 1e-6;
  std::vector<double> gradient(scores.size()), ignored(scores.size());
  loss.evaluate(scores, targets, tie_key, gradient);
  double error = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double at = scores[i];
    scores[i] = at + step;
    const double above = loss.evaluate(scores, targets, tie_key, ignored).loss;
    scores[i] = at - step;
    const double below = loss.evaluate(scores, targets, tie_key, ignored).loss;
    scores[i] = at;
    error = std::max(error, std::abs((above - below) / (2 * step) - gradient[i]));
  }
  return error;
}

}  // namespace tpudist
