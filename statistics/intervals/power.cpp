#include "statistics/intervals/power.hpp"

#include <cmath>

#include "core/means.hpp"
#include "statistics/intervals/distributions.hpp"

namespace tpudist {
namespace {

constexpr int kMostNeeded = 10'000;
constexpr double kPlanLevel = 0.80;  // of the interval of the current variance estimates

double power_of(double difference, const VarianceEstimate& variance, double level) {
  if (variance.variance == 0) return difference == 0 ? 1 - level : 1;
  return t_test_power(difference / std::sqrt(variance.variance), variance.degrees, 1 - level);
}

NeededNumber needed(double difference, const PlannedVariance& variance, double scale,
                    double level) {
  const auto suffice = [&](int number) {
    return power_of(difference, variance(number, scale), level) >= kPower;
  };
  if (suffice(2)) return 2;
  if (!suffice(kMostNeeded)) return std::nullopt;
  int too_few = 2, enough = kMostNeeded;
  while (enough - too_few > 1) {
    const int middle = (too_few + enough) / 2;
    (suffice(middle) ? enough : too_few) = middle;
  }
  return enough;
}

}  // namespace

NeededRange needed_number(double difference, double degrees, const PlannedVariance& variance,
                          double level) {
  const auto truth = [&](double p) { return degrees / chi_square_quantile(p, degrees); };
  return {needed(difference, variance, 1, level),
          needed(difference, variance, truth((1 + kPlanLevel) / 2), level),
          needed(difference, variance, truth((1 - kPlanLevel) / 2), level)};
}

double detectable(double variance, double degrees) {
  const double error = std::sqrt(variance);
  const auto power = [&](double difference) {
    return t_test_power(difference / error, degrees, kSignificance);
  };
  double low = 0, high = 1;
  while (power(high) < kPower && high < 1e6) high *= 2;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (power(middle) < kPower ? low : high) = middle;
  }
  return high;
}

ShakeUp shake_up(double difference, const VarianceEstimate& variance) {
  const double error = std::sqrt(variance.variance);
  if (error < kScoreRounding) return {kNone, kNone};
  const double shift = std::abs(difference) / error;
  return {t_probability(shift, variance.degrees),
          error * expected_loss(shift, variance.degrees, kLargestDifference / error)};
}

}  // namespace tpudist
