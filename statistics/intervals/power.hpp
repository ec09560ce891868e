#pragma once

#include <functional>
#include <optional>

#include "statistics/intervals/interval.hpp"

namespace tpudist {

// The probability with which a true difference should be found.
inline constexpr double kPower = 0.80;

// A number of runs, families and so on; nothing if no number up to 10,000 suffices.
using NeededNumber = std::optional<int>;

// The number for the estimated variance, and for both ends of the variance's 80 % interval: few
// runs or families leave the variance, and so the number, uncertain.
struct NeededRange {
  NeededNumber number, low, high;
};

// The variance of a difference with `number` >= 2 runs (or families), if the current variance
// estimates are too small by a factor of `scale`.
using PlannedVariance = std::function<VarianceEstimate(int number, double scale)>;

// The smallest number with which a two-sided t test at 1 - `level` finds a true `difference` with
// probability kPower. `degrees`: of the current variance estimates, which are chi-square
// distributed around the truth.
NeededRange needed_number(double difference, double degrees, const PlannedVariance& variance,
                          double level = kIntervalLevel);

// The least difference that a two-sided t test at 0.05 finds with probability kPower, if the
// estimate has this variance and these degrees of freedom.
double detectable(double variance, double degrees);

// The largest difference of two scores, of Kendall tau or the tile score.
inline constexpr double kLargestDifference = 2;

// The worth of choosing the system that leads by `difference`. The difference on other families, if
// trained again, has Student's t distribution around it with this variance; no prior knowledge.
// Both values are NaN if `variance` is 0: the spread is unknown (Interval::is_known).
struct ShakeUp {
  double chance = 1;  // probability that the leader leads there
  // Expected loss of score there: 0 if the leader is better, at most kLargestDifference.
  double regret = 0;
};
ShakeUp shake_up(double difference, const VarianceEstimate& variance);

}  // namespace tpudist
