#pragma once

#include <functional>
#include <optional>

#include "statistics/intervals/interval.hpp"

namespace tpudist {

// The probability with which a true difference should be found.
inline constexpr double kPower = 0.80;

// A number of runs, families and so on; nothing: no number up to 10,000 suffices.
using NeededNumber = std::optional<int>;

// The number for the estimated variance, and for both ends of the variance's 80 % interval: a
// variance from few runs or families is uncertain, and so is the number.
struct NeededRange {
  NeededNumber number, low, high;
};

// The variance of a difference with `number` >= 2 runs (or families), if the current variance
// estimates are too small by a factor of `scale`.
using PlannedVariance = std::function<VarianceEstimate(int number, double scale)>;

// The smallest number with which a two-sided t test at 1 - `level` finds a true `difference` with
// probability kPower. `degrees` are those of the current variance estimates, which are chi-square
// distributed around the truth.
NeededRange needed_number(double difference, double degrees, const PlannedVariance& variance,
                          double level = kIntervalLevel);

// The least difference that a two-sided t test at 0.05 finds with probability kPower, where its
// estimate has this variance and so many degrees.
double detectable(double variance, double degrees);

// Two scores, of Kendall tau or the tile score, differ by at most so much.
inline constexpr double kLargestDifference = 2;

// What it is worth to choose the system that leads by `difference`, where a new difference, on other
// families and runs, has Student's t distribution around it with this variance, and nothing was
// known before. Both are NaN where `variance` is 0: the spread is not known (Interval::is_known).
struct ShakeUp {
  double chance = 1;  // probability that it leads there
  // Expected score that is lost if the other is better there: 0 where it is not, at most
  // kLargestDifference.
  double regret = 0;
};
ShakeUp shake_up(double difference, const VarianceEstimate& variance);

}  // namespace tpudist
