#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "train/experiment/bad_loss_config.hpp"

namespace tpudist {

// What happens to a member in a step.
enum class StepVerdict { take, skip, roll_back, leave };

// Decides what becomes of members whose loss or gradient is bad (`train.on_bad_loss`), and counts.
// With `skip` a member is left out when more than `kMostSkipped` of its steps in a row were bad, with
// `roll_back` when it was rolled back `kMostRollBacks` times before. Plain data; a pure function of
// losses and norms, so that ranks with the same sums decide the same.
struct BadLoss {
  static constexpr std::int64_t kMostSkipped = 20, kMostRollBacks = 5;

  BadLoss(const BadLossConfig& config, int members);

  // Of member `m`, which has a slate in this batch.
  StepVerdict judge(std::size_t m, double loss, double norm);
  // What the member's learning rate is multiplied by: 1/2 for each time it was rolled back.
  double rate_factor(std::size_t m) const;

  // State for checkpoints, by names of their own: what is not 0.
  void save(std::map<std::string, double>& numbers) const;
  void restore(const std::map<std::string, double>& numbers);

  BadLossConfig config;
  std::vector<std::int64_t> skipped;      // [M] steps in a row
  std::vector<std::int64_t> rolled_back;  // [M] times
};

}  // namespace tpudist
