#pragma once

#include <functional>
#include <optional>

#include "statistics/interval.hpp"

namespace tpudist {

// The share of experiments in which a difference that is there shall be found.
inline constexpr double kPower = 0.80;

// How many of something find a difference; nothing: no number up to 10,000 does.
using NeededNumber = std::optional<int>;

// The number needed by the variance at hand, and by both ends of its 80 % interval: spreads of few
// runs or families are rough, and so is what follows from them.
struct NeededRange {
  NeededNumber number, low, high;
};

// The variance of a difference with `number` of something, from 2 on, where the variances at hand
// are `scale` times too small.
using PlannedVariance = std::function<VarianceEstimate(int number, double scale)>;

// The fewest with which a two-sided t test at 0.05 finds a true `difference` with probability
// kPower. `degrees` are those of the variances at hand, chi-square distributed around the truth.
NeededRange needed_number(double difference, double degrees, const PlannedVariance& variance);

// The least difference that a two-sided t test at 0.05, divided among `pairs` tests (Holm's first
// step), finds with probability kPower, where its estimate has this variance and so many degrees.
double detectable(double variance, double degrees, int pairs);

// Two scores, of Kendall tau or the tile score, differ by at most so much.
inline constexpr double kLargestDifference = 2;

// What choosing the system that won by `difference` is worth on as many new families and runs, when
// nothing was known before and `variance` is that of the difference between draws of families and
// runs: the new difference is Student's t around `difference` with twice that variance.
struct ShakeUp {
  double chance = 1;  // that the winner wins again
  // Expected score by which the loser is better there, counting 0 where it is not and at most
  // kLargestDifference.
  double regret = 0;
};
ShakeUp shake_up(double difference, const VarianceEstimate& variance);

}  // namespace tpudist
