#pragma once

#include <filesystem>
#include <vector>

#include "core/means.hpp"

namespace tpudist {

// A member's training loss at its beginning and its end. NaN if too little was logged.
struct InitialAndFinalLoss {
  double first = kNone;
  double last = kNone;
};

// The fewest logged steps to judge a member by its losses: the loss of a single step depends more
// on its slates than on the member.
inline constexpr int kLeastLosses = 20;

// [members] From a run's metrics.jsonl: means of the first and the last tenth of the steps with a
// logged loss of the member, if there are at least kLeastLosses. Unreadable lines and a missing
// file are ignored. Throws IoError when it cannot be read.
std::vector<InitialAndFinalLoss> read_loss_ends(const std::filesystem::path& metrics, int members);

}  // namespace tpudist
