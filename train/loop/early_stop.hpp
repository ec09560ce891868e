#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experiment/experiment.hpp"

namespace tpudist {

// Decides which members stop before the last step (`train.early_stop`). A member stops at the
// `patience`-th evaluation in a row whose score does not exceed the best score so far by more than
// `min_delta`. The first score counts as best; a score that is not finite is never better. With
// patience 0 no member stops. Plain data; a pure function of the scores, so ranks with equal scores
// decide the same.
struct EarlyStop {
  EarlyStop(const EarlyStopConfig& config, int members);

  // Takes the scores [M] after step `step`; larger is better. Members with active[m] = false are
  // ignored.
  void take(std::span<const double> scores, const std::vector<bool>& active, std::int64_t step);

  bool has_stopped(std::size_t member) const { return stopped_at[member] >= 0; }

  EarlyStopConfig config;
  std::vector<double> best;              // [M] best score so far; NaN if none
  std::vector<std::int64_t> waited;      // [M] evaluations since
  std::vector<std::int64_t> stopped_at;  // [M] step; -1 while the member trains
};

}  // namespace tpudist
