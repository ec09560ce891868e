#include "models/losses/losses.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tpudist {
namespace {

// A loss that is the mean over the configurations of of_score(score, unit * target), which returns
// a value and its derivative.
template <typename OfScore>
SlateLoss mean_over_scores(const char* name, double unit, const OfScore& of_score) {
  const auto evaluate = [=](std::span<const double> scores, std::span<const double> targets,
                            std::uint64_t, std::span<double> gradient) -> SlateLoss::Value {
    const auto n = static_cast<double>(scores.size());
    double sum = 0;
    for (std::size_t k = 0; k < scores.size(); ++k) {
      const std::pair<double, double> one = of_score(scores[k], unit * targets[k]);
      sum += one.first;
      gradient[k] = one.second / n;
    }
    return {scores.empty() ? 0 : sum / n, false};
  };
  return checked_loss(name, false, evaluate);
}

}  // namespace

SlateLoss mape(double unit) {
  return mean_over_scores("mape", unit,
                          [](double score, double target) -> std::pair<double, double> {
                            const double error = score - target;
                            const double divisor = std::max(std::abs(target), 1.17e-6);
                            const double sign = (error > 0) - (error < 0);
                            return {std::abs(error) / divisor, sign / divisor};
                          });
}

SlateLoss mse(double unit) {
  return mean_over_scores("mse", unit,
                          [](double score, double target) -> std::pair<double, double> {
                            const double error = score - target;
                            return {error * error, 2 * error};
                          });
}

}  // namespace tpudist
