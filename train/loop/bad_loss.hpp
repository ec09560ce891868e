#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "experiment/experiment.hpp"

namespace tpudist {

// What to do with a member in a step.
enum class StepVerdict { take, skip, roll_back, leave };

// Decides what to do with members whose loss or gradient is bad (`train.on_bad_loss`), and counts.
// With `skip` a member is dropped after more than `kMostSkipped` bad steps in a row, with
// `roll_back` if it was rolled back `kMostRollBacks` times before. Plain data; a pure function of
// losses and norms, so ranks with equal sums decide the same.
struct BadLoss {
  static constexpr std::int64_t kMostSkipped = 20, kMostRollBacks = 5;

  BadLoss(const BadLossConfig& config, int members);

  // For member `m`, which has a slate in this batch.
  StepVerdict judge(std::size_t m, double loss, double norm);
  // Factor of the member's learning rate: 1/2 for each time it was rolled back.
  double rate_factor(std::size_t m) const;

  // State for checkpoints, under own names; zeros are left out.
  void save(std::map<std::string, double>& numbers) const;
  void restore(const std::map<std::string, double>& numbers);

  BadLossConfig config;
  std::vector<std::int64_t> skipped;      // [M] steps in a row
  std::vector<std::int64_t> rolled_back;  // [M] times
};

}  // namespace tpudist
