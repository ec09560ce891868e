#include "models/losses/losses.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace tpudist {
namespace {

double checked_unit(const char* name, double unit) {
  if (unit > 0 && !std::isinf(unit)) return unit;
  throw ConfigError(std::string(name) + ": unit must be finite and greater than 0");
}

// The mean over the configurations of of_score(score, unit * target), which returns a value and its
// derivative. `name`: of the loss.
template <typename OfScore>
SlateLoss::Value mean_over_scores(const char* name, std::span<const double> scores,
                                  std::span<const double> targets, double unit,
                                  std::span<double> gradient, const OfScore& of_score) {
  check_slate(name, scores, targets, gradient);
  const auto n = static_cast<double>(scores.size());
  double sum = 0;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const std::pair<double, double> one = of_score(scores[k], unit * targets[k]);
    sum += one.first;
    gradient[k] = one.second / n;
  }
  return {scores.empty() ? 0 : sum / n, false};
}

}  // namespace

Mape::Mape(double unit) : unit_(checked_unit("mape", unit)) {}

SlateLoss::Value Mape::evaluate(std::span<const double> scores, std::span<const double> targets,
                                std::uint64_t, std::span<double> gradient) const {
  return mean_over_scores("mape", scores, targets, unit_, gradient,
                          [](double score, double target) -> std::pair<double, double> {
                            const double error = score - target;
                            const double divisor = std::max(std::abs(target), eps);
                            const double sign = (error > 0) - (error < 0);
                            return {std::abs(error) / divisor, sign / divisor};
                          });
}

Mse::Mse(double unit) : unit_(checked_unit("mse", unit)) {}

SlateLoss::Value Mse::evaluate(std::span<const double> scores, std::span<const double> targets,
                               std::uint64_t, std::span<double> gradient) const {
  return mean_over_scores("mse", scores, targets, unit_, gradient,
                          [](double score, double target) -> std::pair<double, double> {
                            const double error = score - target;
                            return {error * error, 2 * error};
                          });
}

LogHuber::LogHuber(double delta, double unit)
    : delta_(delta), unit_(checked_unit("log_huber", unit)) {
  if (!(delta > 0) || std::isinf(delta))
    throw ConfigError("log_huber: delta must be finite and greater than 0");
}

SlateLoss::Value LogHuber::evaluate(std::span<const double> scores, std::span<const double> targets,
                                    std::uint64_t, std::span<double> gradient) const {
  return mean_over_scores(
      "log_huber", scores, targets, unit_, gradient,
      [this](double score, double target) -> std::pair<double, double> {
        const double error = score - std::log(std::max(target, eps)), size = std::abs(error);
        return {size <= delta_ ? error * error / 2 : delta_ * (size - delta_ / 2),
                std::clamp(error, -delta_, delta_)};
      });
}

}  // namespace tpudist
