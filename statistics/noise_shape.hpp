#pragma once

#include <span>
#include <vector>

namespace tpudist {

// The distribution of a measurement's noise without its size: mean 0, variance 1, as a table over
// -kReach .. kReach standard deviations, outside of which it is 0. Immutable, thread-safe.
class NoiseShape {
 public:
  static constexpr double kReach = 8;

  // The normal distribution.
  NoiseShape();

  // Kernel estimate from standardised deviations, of which there are at least kLeast: normal kernels
  // of half of Silverman's width (the whole one would fill the valley between two humps), and then
  // shifted and scaled to mean 0 and variance 1. Throws Error where there are too few, or one is not
  // finite.
  explicit NoiseShape(std::span<const double> deviations);
  static constexpr std::size_t kLeast = 200;

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
