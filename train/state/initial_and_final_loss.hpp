#pragma once

#include <filesystem>
#include <limits>
#include <vector>

namespace tpudist {

// The training loss of a member where it began and where it ended. NaN where too little was logged.
struct InitialAndFinalLoss {
  double first = std::numeric_limits<double>::quiet_NaN();
  double last = std::numeric_limits<double>::quiet_NaN();
};

// The fewest logged steps of a member that its losses are judged by: the loss of a single step says
// more about its slates than about the member.
inline constexpr int kLeastLosses = 20;

// [members] From a run's metrics.jsonl: means of the first and the last tenth of the steps that were
// logged with a loss of the member, where there are at least kLeastLosses. Lines that cannot be read are
// passed over, and so is a file that is not there. Throws IoError when it cannot be read.
std::vector<InitialAndFinalLoss> read_loss_ends(const std::filesystem::path& metrics, int members);

}  // namespace tpudist
