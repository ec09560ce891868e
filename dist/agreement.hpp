#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dist/communicator.hpp"

namespace tpudist {

// Something that all ranks must have in common before they act on it, as text: {"train.steps",
// "100"}, or a hash of what is too long to be shown.
struct AgreedValue {
  std::string name, value;
};

// Compares the values of all ranks, found by their names. Throws ConfigError, the same on every
// rank, when they differ: it names the first values that do, the ranks and what each has, and ends
// with `advice`, e.g. "train.steps: 100 on rank 0, 200 on ranks 1, 2; give all ranks the same
// experiment file". Collective; one small exchange where ranks agree. Host memory.
void require_agreement(Communicator& communicator, std::span<const AgreedValue> values,
                       std::string_view advice);

// Throws DistError, on every rank, when `value` is not the same on all ranks; `what` names it. For
// results that are equal unless the program is wrong.
void require_equal_on_all_ranks(Communicator& communicator, std::uint64_t value,
                                std::string_view what);

// "rank 3", "ranks 0, 2", "ranks 0 to 7, 9" of ranks in rising order.
std::string rank_list(std::span<const int> ranks);

}  // namespace tpudist
