#pragma once

#include <span>
#include <vector>

namespace tpudist {

// The distribution of a measurement's noise without its size: mean 0, variance 1, as a table over
// -kReach .. kReach standard deviations, outside of which it is 0. Immutable, thread-safe.
class NoiseShape {
 public:
  static constexpr double kReach = 8;

  struct Deviation {
    double value = 0;  // in standard deviations
    double error = 0;  // standard deviation of what was added to it, in the same unit
  };

  // The normal distribution.
  NoiseShape();

  // From standardised deviations from a mean that is itself uncertain, at least kLeast of them: the
  // mixture that makes them most likely, where to each was added a normal error of its own
  // deviation. 20 steps of EM on a grid, smoothed a little, and then shifted and scaled to mean 0
  // and variance 1. Throws Error where there are too few, or one is not finite.
  explicit NoiseShape(std::span<const Deviation> deviations);
  static constexpr std::size_t kLeast = 100;

  // Density at z standard deviations, with a share of 0.2 % of a normal distribution four times as
  // wide, so that one odd measurement is improbable but not impossible.
  double density(double z) const;

  // The deviation below which a share `u` of all lie, 0 <= u < 1, of the table alone: what a uniform
  // random number is to be turned into.
  double quantile(double u) const;

 private:
  void tabulate(std::vector<double> density);

  std::vector<double> density_;     // with wide tails, at the points of the table
  std::vector<double> cumulative_;  // of the table alone
};

}  // namespace tpudist
