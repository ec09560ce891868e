#include "models/losses/regression.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.hpp"

namespace tpudist {
namespace {

double checked_unit(const char* name, double unit) {
  if (unit > 0 && !std::isinf(unit)) return unit;
  throw ConfigError(std::string(name) + ": unit must be finite and greater than 0");
}

}  // namespace

Mape::Mape(double unit) : unit_(checked_unit("mape", unit)) {}

SlateLoss::Value Mape::evaluate(std::span<const double> scores, std::span<const double> targets,
                                std::uint64_t, std::span<double> gradient) const {
  check_slate("mape", scores, targets, gradient);
  const auto n = static_cast<double>(scores.size());
  double sum = 0;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const double target = unit_ * targets[k], error = scores[k] - target;
    const double divisor = std::max(std::abs(target), eps);
    const double sign = (error > 0) - (error < 0);
    sum += std::abs(error) / divisor;
    gradient[k] = sign / divisor / n;
  }
  return {scores.empty() ? 0 : sum / n, false};
}

Mse::Mse(double unit) : unit_(checked_unit("mse", unit)) {}

SlateLoss::Value Mse::evaluate(std::span<const double> scores, std::span<const double> targets,
                               std::uint64_t, std::span<double> gradient) const {
  check_slate("mse", scores, targets, gradient);
  const auto n = static_cast<double>(scores.size());
  double sum = 0;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const double error = scores[k] - unit_ * targets[k];
    sum += error * error;
    gradient[k] = 2 * error / n;
  }
  return {scores.empty() ? 0 : sum / n, false};
}

LogHuber::LogHuber(double delta, double unit)
    : delta_(delta), unit_(checked_unit("log_huber", unit)) {
  if (!(delta > 0) || std::isinf(delta))
    throw ConfigError("log_huber: delta must be finite and greater than 0");
}

SlateLoss::Value LogHuber::evaluate(std::span<const double> scores, std::span<const double> targets,
                                    std::uint64_t, std::span<double> gradient) const {
  check_slate("log_huber", scores, targets, gradient);
  const auto n = static_cast<double>(scores.size());
  double sum = 0;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const double error = scores[k] - std::log(std::max(unit_ * targets[k], eps));
    const double size = std::abs(error);
    sum += size <= delta_ ? error * error / 2 : delta_ * (size - delta_ / 2);
    gradient[k] = std::clamp(error, -delta_, delta_) / n;
  }
  return {scores.empty() ? 0 : sum / n, false};
}

}  // namespace tpudist
