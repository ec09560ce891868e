#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/means.hpp"
#include "results/records/predictions.hpp"
#include "statistics/noise/noise_ceiling.hpp"

namespace tpudist {

// Limits of the score of a ranking of one graph, shown beside the score.
struct ScoreCaveats {
  NoiseCeiling ceiling;  // the score of a perfect ranking on these rows
  // tied_pair_share of the ranking: many ties make a score look better. NaN without a ranking.
  double tied_share = kNone;
  // tau_sampling_deviation: how much tau would vary with other configurations. NaN for tile
  // kernels, and if undefined.
  double sampling_deviation = kNone;
};

// The limits of a ranking [r] of the rows of `predictions`; an empty ranking means none. Layout
// collections use Kendall's tau; tile kernels have no ceiling. Throws DataError on NaN.
ScoreCaveats score_limits(std::string_view collection, std::span<const double> ranking,
                          const PredictionRows& predictions);

// {"ceiling", "ceiling_interval", "ceiling_reason", "tied_share", "sampling_deviation"}; missing
// values are null.
nlohmann::json limits_json(const ScoreCaveats& limits);

}  // namespace tpudist
