#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "statistics/measured_configs.hpp"
#include "statistics/noise_shape.hpp"

namespace tpudist {

// How far one measurement of a configuration lies from its true run time, in logarithms: a
// deviation and a shape that depend on the run time. Immutable, thread-safe.
class NoiseModel {
 public:
  // The standard deviations [k] (logarithms of the time, 0.001 is 0.1 %) at some levels [k]
  // (logarithms of the time, strictly rising). k >= 1. Throws Error where that is not so or a
  // deviation is not positive.
  NoiseModel(std::vector<double> levels, std::vector<double> deviations, NoiseShape shape = {});
  // The same deviations with other shapes: the first one up to the first of `bounds` [s - 1], which
  // rise, and so on. s >= 1.
  NoiseModel with_shapes(std::vector<NoiseShape> shapes, std::vector<double> bounds) const;

  // At a level; its logarithm is interpolated in a straight line, and constant outside.
  double deviation(double level) const;
  const NoiseShape& shape(double level) const;
  // The same with all deviations times `factor`.
  NoiseModel scaled(double factor) const;

 private:
  std::vector<double> levels_, log_deviations_;
  std::vector<NoiseShape> shapes_;
  std::vector<double> bounds_;
};

// What repeated measurements say of the noise.
struct NoiseEstimate {
  NoiseModel model;
  std::int64_t repeated_configs = 0;  // configurations that were measured more than once
  double typical = 0;                 // root mean square of the deviation over their repeats
  double relative_error = 0;          // standard error of the deviation, all levels together
};

// What estimate_noise has to choose. Other choices are as good; how far they move a result is part
// of its uncertainty.
struct NoiseChoices {
  double level_width = 2;               // standard deviations that a level is wide at least
  std::int64_t shape_deviations = 150;  // residuals of one shape at least; 0: it is normal
};

// The fewest repeated configurations that an estimate is made of.
inline constexpr std::int64_t kLeastRepeatedConfigs = 30;

// Why there is no estimate, as one line; empty where there is one.
std::string fault_of_repeats(const MeasuredConfigs& measured);

// The deviation at a level is pooled from the residuals within configurations: of neighbours in
// mean run time that have at least 80 residuals more than means together, the sum of squares by
// that number; such a level is `level_width` deviations wide at least. The shape comes from configurations
// with n >= 6 repeats, of neighbours with at least `shape_deviations` residuals together: a residual times
// n / (n - 1) is the deviation of one measurement plus an error of variance 1 / (n - 1), that of the
// mean of the others. With fewer than NoiseShape::kLeast in all it is normal. Throws DataError with
// fault_of_repeats.
NoiseEstimate estimate_noise(const MeasuredConfigs& measured, const NoiseChoices& choices = {});

}  // namespace tpudist
