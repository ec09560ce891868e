#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "statistics/measured_configs.hpp"
#include "statistics/noise_shape.hpp"

namespace tpudist {

// How far one measurement of a configuration lies from its true run time, in logarithms: a
// deviation that depends on the run time, and a shape that does not. Immutable, thread-safe.
class NoiseModel {
 public:
  // The standard deviations [k] (logarithms of the time, 0.001 is 0.1 %) at some levels [k]
  // (logarithms of the time, strictly rising). k >= 1. Throws Error where that is not so or a
  // deviation is not positive.
  NoiseModel(std::vector<double> levels, std::vector<double> deviations, NoiseShape shape = {});

  // At a level; its logarithm is interpolated in a straight line, and constant outside.
  double deviation(double level) const;
  const NoiseShape& shape() const { return shape_; }
  // The same with all deviations times `factor`.
  NoiseModel scaled(double factor) const;
  // The same deviations with another shape.
  NoiseModel with_shape(NoiseShape shape) const;

 private:
  std::vector<double> levels_, log_deviations_;
  NoiseShape shape_;
};

// What repeated measurements say of the noise.
struct NoiseEstimate {
  NoiseModel model;
  std::int64_t repeated_configs = 0;  // configurations that were measured more than once
  double typical = 0;                 // root mean square of the deviation over their repeats
  double relative_error = 0;          // standard error of the deviation, all levels together
};

// The fewest repeated configurations that an estimate is made of.
inline constexpr std::int64_t kLeastRepeatedConfigs = 30;

// Why there is no estimate, as one line; empty where there is one.
std::string fault_of_repeats(const MeasuredConfigs& measured);

// The deviation at a level is pooled from the residuals within configurations: of neighbours in mean
// run time that have at least 80 residuals more than means together, the sum of squares by that
// number. The shape comes from the residuals, times sqrt(n / (n - 1)), of configurations with
// n >= 6 repeats, where there are NoiseShape::kLeast; else it is normal. Throws
// DataError with fault_of_repeats.
NoiseEstimate estimate_noise(const MeasuredConfigs& measured);

}  // namespace tpudist
