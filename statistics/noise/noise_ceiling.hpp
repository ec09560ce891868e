#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.hpp"
#include "statistics/noise/measured_configs.hpp"
#include "statistics/noise/noise_model.hpp"

namespace tpudist {

// The distribution of the true run times of a graph's configurations, given all their measurements:
// the mixture over a grid in log time that makes the measurements most likely (Kiefer and
// Wolfowitz, 1956; Laird, "Nonparametric maximum likelihood estimation of a mixing distribution",
// JASA 1978), by kSteps steps of EM from equal weights. The grid has kPerDeviation points per local
// standard deviation of the noise. A configuration uses only the points within 5 deviations of the
// median of its measurements. Memory is proportional to the configurations, time to configurations
// x steps. Immutable, thread-safe.
class TrueTimes {
 public:
  static constexpr int kSteps = 60;
  static constexpr int kPerDeviation = 3;

  TrueTimes(const MeasuredConfigs& measured, const NoiseModel& noise);

  // One possible truth: the log true time of each configuration [C]. Drawn from the configuration's
  // posterior distribution over the grid, and uniformly within a cell, so that no two are equal.
  std::vector<double> draw(CounterRng& random) const;

  // [points] the grid and its weights, which sum to 1.
  const std::vector<double>& grid() const { return grid_; }
  const std::vector<double>& weights() const { return weights_; }

 private:
  // The grid points that one configuration uses.
  struct Band {
    std::int64_t first = 0, count = 0;  // in the grid
    std::int64_t begin = 0;             // in likelihood_
  };

  void make_grid(const NoiseModel& noise, const std::vector<double>& centres);
  void weigh(const MeasuredConfigs& measured, const NoiseModel& noise,
             const std::vector<double>& centres);
  void step();

  std::vector<double> grid_, width_;  // points, and their cells' widths
  std::vector<double> weights_;
  std::vector<Band> bands_;        // [C]
  std::vector<float> likelihood_;  // of all bands, each divided by its largest value
};

// The score that a perfect ranking of a graph's configurations would reach in spite of measurement
// noise: the expected Kendall tau-b between the true times and the measured rows. Equal
// configurations have equal true times, different ones have different times. Plain data.
struct NoiseCeiling {
  // Nothing if there is no estimate; `reason` then says why in one line.
  std::optional<double> value;
  std::string reason;
  // A 95 % interval for the score of the perfect ranking on such rows. It covers the spread over
  // possible truths and measurements, the standard error of the noise, the effect of other
  // NoiseChoices, and 0.006 for the deconvolution. With `normal_assumed`, the farthest ceiling of
  // other shapes widens each end by the root of the sum of squares.
  double low = 0, high = 0;
  std::int64_t repeated_configs = 0;
  double noise = 0;  // relative standard deviation of a measurement; root mean square over repeats
  // Too few configurations have six repeats to show the shape of the noise (NoiseEstimate). `value`
  // assumes normal noise; exponential noise and long tails widen the interval.
  bool normal_assumed = false;
};

// `times` [n] are the measured run times of the ranked rows (any unit; whole numbers count as
// rounded). `config` [n] has equal numbers for equal configurations. Estimates the noise
// (estimate_noise) and the distribution of the true times (TrueTimes), draws true times, simulates
// a measurement of every row, and averages tau-b. Five other noise models give the interval; two
// more if the noise is assumed normal. O(n log n) time, a few hundred bytes per row; a pure
// function of its arguments.
//
// Returns a reason instead of a ceiling if a time is not positive and finite, or if there are fewer
// than two configurations. Without `noise`, also if fewer than kLeastRepeatedConfigs are
// repeated or repeats never differ. Throws Error if lengths differ.
// `seed`: of the draws. `noise`: if known; otherwise estimated from repeated measurements.
NoiseCeiling noise_ceiling(std::span<const double> times, std::span<const std::int32_t> config,
                           std::uint64_t seed = 1, const std::optional<NoiseModel>& noise = {});

// The reason for graphs that are not scored by Kendall's tau.
inline constexpr std::string_view kNoTileCeiling =
    "tile kernels are scored by their fastest configurations, not by Kendall tau";

// "0.824 (0.819 to 0.829)", perhaps with ", noise assumed normal", or "none: " and the reason.
std::string to_text(const NoiseCeiling& ceiling);

}  // namespace tpudist
