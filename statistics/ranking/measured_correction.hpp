#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/means.hpp"

namespace tpudist {

// A measured configuration of a list. It may be measured several times.
struct Measurement {
  std::size_t config = 0;  // index in the list
  double time = 0;         // in any unit; finite and above 0
};

// What do measurements of some configurations say about the order of all?
struct MeasuredCorrection {
  // [c] lower is faster. A measured configuration has the mean logarithm of its times, another one
  // the predicted logarithm; without a correction (`why_not`) the scores as given.
  std::vector<double> scores;
  std::vector<double> times;  // [c] the geometric mean of the measured times; NaN if not measured
  std::size_t measured = 0;   // configurations
  // Kendall tau-b with the measured times, over the measured configurations: of the scores as
  // given, and of the correction that leaves out the configuration it predicts. The second is
  // slightly too good: it chose the ridge.
  double tau_before = kNone, tau_after = kNone;
  double ridge = std::numeric_limits<double>::infinity();  // chosen; infinity: no state counts
  std::string why_not;  // why the order stays as it was; else empty
  // `scores` of any configuration by its score as given and its states [n]; does not look whether
  // the configuration is measured.
  using Predict = std::function<double(double score, std::span<const std::int32_t> states)>;
  Predict predict;
};

// Scales scores to the mean and spread of the log times. Fits the residuals by ridge regression on
// the states and, weakly, on the score. The features of states are one indicator for each state of
// each operation; operations that differ alike among the measured configurations count once, and all
// together weigh as much as one constant. Chooses the ridge by the squared leave-one-out error among
// kRidges, or none at all. Uses 500 of more measured configurations, evenly spaced by time. `scores`
// [c], lower is faster; `states` [c][n] numbers, equal for equal states of an operation. Pure. Throws
// Error if lengths differ, or a measurement is out of range.
inline constexpr double kRidges[] = {0.1, 0.3, 1, 3, 10, 30, 100};
MeasuredCorrection correct_by_measurements(std::span<const double> scores,
                                           std::span<const std::int32_t> states,
                                           std::span<const Measurement> measurements);

}  // namespace tpudist
