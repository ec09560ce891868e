#include "launch/cores.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

namespace tpudist {
namespace {

std::string own_mask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return "1";
  std::string mask;
  for (int core = 0; core < CPU_SETSIZE; ++core) mask += CPU_ISSET(core, &set) ? '1' : '0';
  return mask.substr(0, mask.rfind('1') + 1);
}

}  // namespace

int share_of_cores(const std::vector<std::string>& masks, int rank) {
  double share = 0;
  for (std::size_t core = 0; core < masks[rank].size(); ++core) {
    if (masks[rank][core] != '1') continue;
    const auto users = std::ranges::count_if(
        masks, [core](const std::string& mask) { return core < mask.size() && mask[core] == '1'; });
    share += 1.0 / static_cast<double>(users);
  }
  return std::max(1, static_cast<int>(share + 1e-6));
}

int share_of_cores(Communicator& world, const NodePlace& place) {
  const std::string node = fmt::format("{} ", place.node);
  std::vector<std::string> masks;
  for (const std::string& line : all_gather_text(world, node + own_mask())) {
    if (line.starts_with(node)) masks.push_back(line.substr(node.size()));
  }
  return share_of_cores(masks, place.local_rank);
}

}  // namespace tpudist
