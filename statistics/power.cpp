#include "statistics/power.hpp"

#include <cmath>

#include "statistics/distributions.hpp"
#include "statistics/permutation.hpp"

namespace tpudist {
namespace {

constexpr int kMostRuns = 10'000;

double power_of(double difference, const VarianceEstimate& variance) {
  if (variance.variance == 0) return difference == 0 ? kSignificance : 1;
  return t_test_power(difference / std::sqrt(variance.variance), variance.degrees, kSignificance);
}

}  // namespace

std::optional<int> runs_needed(double difference, const VarianceOfRuns& variance) {
  const auto suffice = [&](int runs) { return power_of(difference, variance(runs)) >= kPower; };
  if (suffice(2)) return 2;
  if (!suffice(kMostRuns)) return std::nullopt;
  int too_few = 2, enough = kMostRuns;
  while (enough - too_few > 1) {
    const int middle = (too_few + enough) / 2;
    (suffice(middle) ? enough : too_few) = middle;
  }
  return enough;
}

double detectable_difference(const VarianceEstimate& variance) {
  if (variance.variance == 0) return 0;
  double low = 0, high = 1;
  const double unit = std::sqrt(variance.variance);
  while (power_of(high * unit, variance) < kPower) high *= 2;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (power_of(middle * unit, variance) < kPower ? low : high) = middle;
  }
  return high * unit;
}

ShakeUp shake_up(double difference, const VarianceEstimate& families) {
  if (families.variance == 0) return {difference == 0 ? 0.5 : 1.0, 0};
  const double error = std::sqrt(2 * families.variance);
  const double shift = std::abs(difference) / error;
  return {t_probability(shift, families.degrees), error * expected_loss(shift, families.degrees)};
}

}  // namespace tpudist
