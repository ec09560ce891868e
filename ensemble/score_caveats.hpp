#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "ensemble/predictions.hpp"
#include "statistics/noise_ceiling.hpp"

namespace tpudist {

// What to hold beside the score of a ranking of one graph.
struct ScoreCaveats {
  NoiseCeiling ceiling;  // what a perfect ranking would score on these rows
  // tied_pair_share of the ranking: a score with many ties is flattered. NaN without a ranking.
  double tied_share = std::numeric_limits<double>::quiet_NaN();
  // tau_sampling_deviation: how far tau would move with other configurations. NaN for tile kernels
  // and where it is not defined.
  double sampling_deviation = std::numeric_limits<double>::quiet_NaN();
};

// Of one ranking [r] of the rows of `predictions`, empty where nobody ranked them. Kendall's tau is
// that of layout collections; tile kernels have no ceiling. Throws DataError on NaN.
ScoreCaveats score_limits(std::string_view collection, std::span<const double> ranking,
                          const PredictionRows& predictions);

// A graph with its score, as a line of the table.
struct LimitedScore {
  std::string graph;
  double score = 0;  // NaN where it is undefined
  ScoreCaveats limits;
};

// An aligned table: score, ceiling with its interval, share of tied pairs, sampling deviation, and
// why graphs have no ceiling. Empty where no graph was measured and ranked.
std::string limits_text(std::span<const LimitedScore> graphs, std::string_view metric);

// {"ceiling", "ceiling_interval", "ceiling_reason", "tied_share", "sampling_deviation"}; null where
// there is none.
nlohmann::json limits_json(const ScoreCaveats& limits);

}  // namespace tpudist
