#include "models/losses/pairwise.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"

namespace tpudist {
namespace {

// Adds up the results of `of_pair` for each pair of a slower and a faster configuration: the value
// at the difference of their scores, and its derivative. `name`: of the loss.
template <typename OfPair>
SlateLoss::Value sum_over_pairs(const char* name, std::span<const double> scores,
                                std::span<const double> targets, std::span<double> gradient,
                                PairReduction reduction, const OfPair& of_pair) {
  check_slate(name, scores, targets, gradient);
  std::ranges::fill(gradient, 0.0);
  const std::size_t n = scores.size();
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      if (targets[i] == targets[j]) continue;
      const std::size_t slow = targets[i] > targets[j] ? i : j, fast = slow == i ? j : i;
      const std::pair<double, double> pair = of_pair(scores[slow] - scores[fast]);
      sum += pair.first;
      gradient[slow] += pair.second;
      gradient[fast] -= pair.second;
    }
  }
  if (reduction == PairReduction::sum || n == 0) return {sum, true};
  const double pairs = static_cast<double>(n) * static_cast<double>(n);
  for (double& g : gradient) g /= pairs;
  return {sum / pairs, true};
}

}  // namespace

PairwiseHinge::PairwiseHinge(double margin, PairReduction reduction)
    : margin_(margin), reduction_(reduction) {
  if (!(margin >= 0) || std::isinf(margin))
    throw ConfigError("pairwise_hinge: margin must be finite and 0 or more");
}

SlateLoss::Value PairwiseHinge::evaluate(std::span<const double> scores,
                                         std::span<const double> targets, std::uint64_t,
                                         std::span<double> gradient) const {
  return sum_over_pairs("pairwise_hinge", scores, targets, gradient, reduction_,
                        [&](double difference) -> std::pair<double, double> {
                          const double value = margin_ - difference;
                          if (value < 0) return {0.0, 0.0};
                          return {value, -1.0};  // also for NaN
                        });
}

PairwiseLogistic::PairwiseLogistic(double sigma, PairReduction reduction)
    : sigma_(sigma), reduction_(reduction) {
  if (!(sigma > 0) || std::isinf(sigma))
    throw ConfigError("pairwise_logistic: sigma must be finite and greater than 0");
}

SlateLoss::Value PairwiseLogistic::evaluate(std::span<const double> scores,
                                            std::span<const double> targets, std::uint64_t,
                                            std::span<double> gradient) const {
  return sum_over_pairs("pairwise_logistic", scores, targets, gradient, reduction_,
                        [&](double difference) -> std::pair<double, double> {
                          // log(1 + exp(-x)) without overflow for either sign.
                          const double x = sigma_ * difference, small = std::exp(-std::abs(x));
                          const double value = std::max(-x, 0.0) + std::log1p(small);
                          const double sigmoid_of_minus_x = (x > 0 ? small : 1.0) / (1 + small);
                          return {std::isnan(x) ? x : value, -sigma_ * sigmoid_of_minus_x};
                        });
}

}  // namespace tpudist
