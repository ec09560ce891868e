#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "statistics/noise_model.hpp"

namespace tpudist {

// The score that a perfect ranking of a graph's configurations would reach in spite of measurement
// noise: the expected Kendall tau-b between the true times and the measured rows. Equal
// configurations have equal true times, all others different ones. Plain data.
struct NoiseCeiling {
  // Nothing where it cannot be estimated; `reason` then says why in one line.
  std::optional<double> value;
  std::string reason;
  // A 95 % interval for the score of the perfect ranking on such rows. It covers the spread over
  // possible truths and measurements, the standard error of the noise, the effect of other
  // NoiseChoices, and 0.006 for the deconvolution.
  double low = 0, high = 0;
  std::int64_t repeated_configs = 0;
  double noise = 0;  // relative standard deviation of a measurement; root mean square over repeats
};

struct NoiseCeilingOptions {
  std::uint64_t seed = 1;
  int draws = 20;  // number of possible truths, at least 2
  // The noise if it is known; nothing: it is estimated from repeated measurements.
  std::optional<NoiseModel> noise;
};

// `times` [n] are the measured run times of the ranked rows (any unit; if all are whole numbers
// they are taken as rounded). `config` [n] has equal numbers for equal configurations. Estimates
// the noise (estimate_noise) and the distribution of the true times (TrueTimes), draws true times,
// simulates a measurement of every row, and averages tau-b. Five more noise estimates give the
// interval. O(n log n) time, a few hundred bytes per row; a pure function of its arguments.
//
// There is a reason instead of a ceiling where a time is not positive and finite, or where there
// are fewer than two configurations. Without `options.noise` also where fewer than
// kLeastRepeatedConfigs are repeated, or repeats never differ. Throws Error where lengths differ.
NoiseCeiling noise_ceiling(std::span<const double> times, std::span<const std::int32_t> config,
                           const NoiseCeilingOptions& options = {});

// The reason for graphs that are not scored by Kendall's tau.
inline constexpr std::string_view kNoTileCeiling =
    "tile kernels are scored by their fastest configurations, not by Kendall tau";

// "0.824 (0.819 to 0.829)", or "none: " and the reason.
std::string to_text(const NoiseCeiling& ceiling);

}  // namespace tpudist
