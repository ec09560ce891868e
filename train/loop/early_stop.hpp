#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/experiment/experiment.hpp"

namespace tpudist {

// Decides which members stop before the last step (`train.early_stop`): a member stops at the
// `patience`-th evaluation in a row whose score does not exceed the best one that counted so far by
// more than `min_delta`. The first score counts; one that is not finite exceeds nothing. With
// patience 0 nobody stops. Plain data: a pure function of the scores, so that ranks with the same
// scores decide the same.
struct EarlyStop {
  EarlyStop(const EarlyStopConfig& config, int members);

  // Takes the scores [M] behind step `step`; larger is better. Those of members with active[m] =
  // false are passed over.
  void take(std::span<const double> scores, const std::vector<bool>& active, std::int64_t step);

  bool has_stopped(std::size_t member) const { return stopped_at[member] >= 0; }

  EarlyStopConfig config;
  std::vector<double> best;              // [M] best score that counted; NaN if none
  std::vector<std::int64_t> waited;      // [M] evaluations since
  std::vector<std::int64_t> stopped_at;  // [M] step, -1 while the member goes on
};

}  // namespace tpudist
