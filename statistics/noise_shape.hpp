#pragma once

#include <span>
#include <vector>

namespace tpudist {

// The distribution of a measurement's noise, scaled to mean 0 and variance 1. A table over -kReach
// .. kReach standard deviations; 0 outside. Immutable, thread-safe.
class NoiseShape {
 public:
  static constexpr double kReach = 8;

  struct Deviation {
    double value = 0;  // in standard deviations
    double error = 0;  // standard deviation of its own error, in the same unit
  };

  // The normal distribution.
  NoiseShape();

  // Estimates the shape from at least kLeast standardised deviations, each with a normal error of
  // known size: the mixture that makes them most likely. 20 steps of EM on a grid, then light
  // smoothing, then shifting and scaling to mean 0 and variance 1. Throws Error where there are too
  // few, or one is not finite.
  explicit NoiseShape(std::span<const Deviation> deviations);
  static constexpr std::size_t kLeast = 100;

  // Density at z standard deviations. A share of 0.2 % is a normal distribution four times as wide,
  // so that one odd measurement is improbable but not impossible.
  double density(double z) const;

  // The quantile of 0 <= u < 1, from the table alone; turns a uniform random number into noise.
  double quantile(double u) const;

 private:
  void tabulate(std::vector<double> density);

  std::vector<double> density_;     // with wide tails, at the points of the table
  std::vector<double> cumulative_;  // from the table alone
};

}  // namespace tpudist
