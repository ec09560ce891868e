#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "statistics/noise_model.hpp"

namespace tpudist {

// What a perfect ranking of a graph's configurations would score, because measurements are noisy:
// the expectation of Kendall's tau-b between the true time of each configuration and the measured
// rows. Equal configurations are tied in the truth, all others strictly ordered. Plain data.
struct NoiseCeiling {
  // Nothing where it cannot be told; `reason` says why in one line.
  std::optional<double> value;
  std::string reason;
  // Holds with 95 % what the perfect ranking scores on rows such as these: the spread over possible
  // truths and measurements, the standard error of the noise, how far other NoiseChoices move the
  // ceiling, and 0.006 for the deconvolution.
  double low = 0, high = 0;
  std::int64_t repeated_configs = 0;
  double noise = 0;  // standard deviation of a measurement, relative; root mean square of repeats
};

struct NoiseCeilingOptions {
  std::uint64_t seed = 1;
  int draws = 20;  // possible truths, at least 2
  // The noise where it is known; nothing: it is estimated from repeated measurements.
  std::optional<NoiseModel> noise;
};

// `times` [n] are the measured run times of the rows that are ranked (any unit; whole numbers are
// taken as rounded), `config` [n] numbers equal configurations equally. Estimates the noise
// (estimate_noise) and the distribution of the true times (TrueTimes), draws true times, measures
// every row anew, and averages tau-b; again with five other noises for the interval. O(n log n) time, a few hundred bytes for each row; a pure
// function of its arguments. There is no ceiling, but a reason, where a time is not positive or not
// finite, where there are fewer than two configurations, and without `options.noise` where fewer
// than kLeastRepeatedConfigs are repeated or repeats never differ. Throws Error where lengths
// differ.
NoiseCeiling noise_ceiling(std::span<const double> times, std::span<const std::int32_t> config,
                           const NoiseCeilingOptions& options = {});

// The reason of those that are not scored by Kendall's tau.
inline constexpr std::string_view kNoTileCeiling =
    "tile kernels are scored by their fastest configurations, not by Kendall tau";

// "0.824 (0.819 to 0.829)", or "none: " and the reason.
std::string to_text(const NoiseCeiling& ceiling);

}  // namespace tpudist
