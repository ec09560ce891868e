#include "launch/sweep/rank_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/numbers.hpp"

namespace tpudist {

std::vector<int> group_of_ranks(const std::vector<int>& sizes, int ranks) {
  std::vector<int> groups;
  if (sizes.empty()) return std::vector<int>(static_cast<std::size_t>(ranks), 0);
  if (std::ranges::min(sizes) < 1) {
    throw ConfigError("--groups: a group has at least one rank");
  }
  int group = 0;
  for (; static_cast<int>(groups.size()) < ranks; ++group) {
    const int size = sizes[std::min(static_cast<std::size_t>(group), sizes.size() - 1)];
    const int left = ranks - static_cast<int>(groups.size());
    if (left < size && group < static_cast<int>(sizes.size()))
      throw ConfigError(fmt::format(
          "--groups: group {} has {} ranks, but of the job's {} only {} left for it; start more "
          "ranks, or give smaller groups",
          group, size, counted(ranks, "rank"), left == 1 ? "1 is" : fmt::format("{} are", left)));
    groups.insert(groups.end(), static_cast<std::size_t>(std::min(size, left)), group);
  }
  if (group < static_cast<int>(sizes.size())) {
    throw ConfigError(fmt::format("--groups: {} sizes, but the {} ranks fill {} groups only",
                                  sizes.size(), ranks, group));
  }
  return groups;
}

}  // namespace tpudist
