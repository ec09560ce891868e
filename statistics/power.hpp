#pragma once

#include <functional>
#include <optional>

#include "statistics/interval.hpp"

namespace tpudist {

// The share of experiments in which a difference that is there shall be found.
inline constexpr double kPower = 0.80;

// The variance of a difference if each side had so many runs, from 2 on.
using VarianceOfRuns = std::function<VarianceEstimate(int runs)>;

// The fewest runs of each side with which a two-sided t test at 0.05 finds `difference` with
// probability kPower; nothing where 10,000 do not suffice.
std::optional<int> runs_needed(double difference, const VarianceOfRuns& variance);

// The least true difference that such a test finds with probability kPower.
double detectable_difference(const VarianceEstimate& variance);

// What choosing the system that won by `difference` on some families is worth on as many new ones,
// when nothing was known before and `families` is the variance of the difference between draws of
// families: the new difference is Student's t around `difference` with twice that variance.
struct ShakeUp {
  double chance = 1;  // that the winner wins again
  // Expected score by which the loser is better on the new families, counting 0 where it is not.
  // Infinite up to one degree of freedom.
  double regret = 0;
};
ShakeUp shake_up(double difference, const VarianceEstimate& families);

}  // namespace tpudist
