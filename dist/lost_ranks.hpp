#pragma once

#include <span>
#include <string>
#include <vector>

#include "dist/rank_silence.hpp"

namespace tpudist {

// Identifies the set of processes in which a process number is unique: one boot of a machine and
// one PID namespace. Empty where the system does not tell.
std::string process_space();

// The ranks whose processes have ended although they had not reported a failure. `ranks` [R]. Only
// known ranks in the process space of rank `self` can be judged.
std::vector<int> ended_ranks(std::span<const RankSilence> ranks, int self);

// The known ranks, without `self`, that do not answer.
std::vector<int> mute_ranks(std::span<const RankSilence> ranks, int self);

}  // namespace tpudist
