#pragma once

#include <span>
#include <string>
#include <vector>

#include "dist/rank_silence.hpp"

namespace tpudist {

// Names the processes among which a process number means one process: those of one start of a machine
// that share a namespace of process numbers. Empty where the system does not tell.
std::string process_space();

// Those of `ranks` [R] whose processes have ended though they had not failed: known ones, of the
// process space of rank `self`. Nothing can be said of others.
std::vector<int> ended_ranks(std::span<const RankSilence> ranks, int self);

// Those that are known and do not answer, but for `self`.
std::vector<int> mute_ranks(std::span<const RankSilence> ranks, int self);

}  // namespace tpudist
