#pragma once

#include <span>
#include <string>
#include <string_view>

#include "dist/collectives/communicator.hpp"

namespace tpudist {

// A named text that must be equal on all ranks before they act on it: a value such as
// {"train.steps", "100"}, or a hash of something too long to show.
struct AgreedValue {
  std::string name, value;
};

// Compares the values of all ranks by name. If they differ, throws the same ConfigError on every
// rank, with the first name that differs, its values with their ranks, and `advice`, e.g.
// "train.steps: 100 on rank 0, 200 on ranks 1, 2; give all ranks the same experiment file".
// Collective; one small exchange if the ranks agree. Host memory.
void require_agreement(Communicator& communicator, std::span<const AgreedValue> values,
                       std::string_view advice);

// Throws DistError on every rank unless `value` is the same on all ranks. `what` names the value.
// The error names the ranks, with their nodes, that differ from more than half of all. For results
// that only a bug or a faulty machine can make differ.
void require_equal_on_all_ranks(Communicator& communicator, std::uint64_t value,
                                std::string_view what);

// "rank 3", "ranks 0, 2", "ranks 0 to 7, 9"; `ranks` in ascending order.
std::string rank_list(std::span<const int> ranks);

}  // namespace tpudist
