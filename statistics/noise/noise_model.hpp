#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "statistics/noise/measured_configs.hpp"

namespace tpudist {

// The distribution of a measurement's noise, scaled to mean 0 and variance 1. A table over -kReach
// .. kReach standard deviations; the density outside is 0. Immutable, thread-safe.
class NoiseShape {
 public:
  static constexpr double kReach = 8;

  struct Deviation {
    double value = 0;  // in standard deviations
    double error = 0;  // standard deviation of the error of `value`, in that unit
  };

  // The normal distribution.
  NoiseShape();

  // Estimates the shape from at least kLeast standardised deviations, each with a normal error of
  // known size: the mixture that makes the deviations most likely. 20 steps of EM on a grid, then
  // light smoothing, then shifting and scaling to mean 0 and variance 1. Throws Error if there are
  // too few, or one is not finite.
  explicit NoiseShape(std::span<const Deviation> deviations);
  static constexpr std::size_t kLeast = 100;

  // Density at z standard deviations. A share of 0.2 % is a normal distribution four times as wide,
  // so that one odd measurement is improbable but not impossible.
  double density(double z) const;

  // The quantile of 0 <= u < 1, without the wide tails; turns a uniform random number into noise.
  double quantile(double u) const;

 private:
  void tabulate(std::vector<double> density);

  std::vector<double> density_;     // with wide tails, at the points of the table
  std::vector<double> cumulative_;  // from the table alone
};

// The distribution of log(measured time) - log(true time) of one measurement. Its standard
// deviation and shape depend on the run time. Immutable, thread-safe.
class NoiseModel {
 public:
  // `deviations` [k] are standard deviations of the log time (0.001 is 0.1 %) at `levels` [k],
  // which are strictly ascending log times. k >= 1. Throws Error otherwise, or if a deviation is
  // not positive.
  NoiseModel(std::vector<double> levels, std::vector<double> deviations, NoiseShape shape = {});
  // The same deviations with other shapes [s], s >= 1: the first shape up to the first of the
  // ascending `bounds` [s - 1] (log times), and so on.
  NoiseModel with_shapes(std::vector<NoiseShape> shapes, std::vector<double> bounds) const;

  // The deviation at a level. The logarithm is linear between the levels and constant outside.
  double deviation(double level) const;
  const NoiseShape& shape(double level) const;
  // The same with all deviations times `factor`.
  NoiseModel scaled(double factor) const;

 private:
  std::vector<double> levels_, log_deviations_;
  std::vector<NoiseShape> shapes_;
  std::vector<double> bounds_;
};

// The noise as estimated from repeated measurements.
struct NoiseEstimate {
  NoiseModel model;
  std::int64_t repeated_configs = 0;  // configurations measured more than once
  double typical = 0;                 // root mean square deviation of their repeats
  double relative_error = 0;          // standard error of the deviation, all levels together
  bool shape_known = false;           // else a normal shape: see estimate_noise
};

// Free choices of estimate_noise. Other values are equally justified, so their effect is part of a
// result's uncertainty.
struct NoiseChoices {
  double level_width = 2;               // least width of a level, in standard deviations
  double level_degrees = 80;            // least degrees of freedom of a level's deviation
  std::int64_t shape_deviations = 150;  // least residuals per shape; 0: a normal shape
};

// The fewest repeated configurations for an estimate.
inline constexpr std::int64_t kLeastRepeatedConfigs = 30;

// Says in one line why there is no estimate; empty if there is one.
std::string fault_of_repeats(const MeasuredConfigs& measured);

// Estimates the noise from repeats. The deviation at a level pools the residuals of configurations
// with neighbouring mean run times: sum of squares / (residuals - means), with at least
// `level_degrees` in the divisor. A level is at least `level_width` deviations wide.
//
// The shape comes from configurations with n >= 6 repeats, pooled over neighbours until there are
// at least `shape_deviations` residuals. A residual times n / (n - 1) is the deviation of one
// measurement, plus an error of variance 1 / (n - 1) from the mean of the others. With fewer than
// NoiseShape::kLeast residuals in all, the shape is normal. Throws DataError with fault_of_repeats.
NoiseEstimate estimate_noise(const MeasuredConfigs& measured, const NoiseChoices& choices = {});

}  // namespace tpudist
