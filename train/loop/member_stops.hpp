#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "train/experiment/experiment.hpp"

namespace tpudist {

// The decision about a member in a step.
enum class StepVerdict { take, skip, leave };

// Decides what to do with members whose loss or gradient is bad (`train.on_bad_loss`), and counts.
// `skip` drops a member after more than `kMostSkipped` bad steps in a row. Plain data; a pure
// function of losses and norms, so ranks with equal sums decide the same.
struct BadLoss {
  static constexpr std::int64_t kMostSkipped = 20;

  BadLoss(const BadLossConfig& config, int members);

  // Judges member `m`, which has a slate in this batch.
  StepVerdict judge(std::size_t m, double loss, double norm);

  // State for checkpoints, under names of its own; zeros are left out.
  void save(std::map<std::string, double>& numbers) const;
  void restore(const std::map<std::string, double>& numbers);

  BadLossConfig config;
  std::vector<std::int64_t> skipped;  // [M] bad steps in a row
};

// Decides which members stop before the last step (`train.early_stop`). A member stops at the
// `patience`-th evaluation in a row whose score does not exceed the best score so far by more than
// `min_delta`. The first score counts as best; a score that is not finite is never better. With
// patience 0 no member stops. Plain data; a pure function of the scores, so ranks with equal scores
// decide the same.
struct EarlyStop {
  EarlyStop(const EarlyStopConfig& config, int members);

  // Takes the scores [M] after step `step`; larger is better. Ignores members that are not active.
  void take(std::span<const double> scores, const std::vector<bool>& active, std::int64_t step);

  bool has_stopped(std::size_t member) const { return stopped_at[member] >= 0; }

  EarlyStopConfig config;
  std::vector<double> best;              // [M] best score so far; NaN if none
  std::vector<std::int64_t> waited;      // [M] evaluations since the best one
  std::vector<std::int64_t> stopped_at;  // [M] step; -1 while the member trains
};

// A member that took no step after step `step`, because `train.early_stop.patience` evaluations in
// a row were not better than that of `best_step`. The best score is optimistic: it is the largest
// of several scores on the same graphs.
struct EarlyStopped {
  int member = 0;  // number
  std::int64_t step = 0, best_step = 0;
  double best_score = 0;
};

}  // namespace tpudist
