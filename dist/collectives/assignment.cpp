#include "dist/collectives/assignment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace tpudist {

std::vector<int> assign_by_cost(std::span<const double> costs, int ranks) {
  if (ranks < 1) throw DistError(fmt::format("assign_by_cost: {} ranks", ranks));
  double total = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    total += costs[i];
    if (!(costs[i] >= 0) || !std::isfinite(total)) {
      throw DistError(fmt::format("assign_by_cost: cost {} of item {} is not usable (total {})",
                                  costs[i], i, total));
    }
  }
  std::vector<int> owner(costs.size());
  double before = 0;
  int last = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    // Without any cost, items have equal weight.
    const double middle =
        total > 0 ? (before + costs[i] / 2) / total : (static_cast<double>(i) + 0.5) / costs.size();
    last = std::max(last, std::min(static_cast<int>(middle * ranks), ranks - 1));
    owner[i] = last;
    before += costs[i];
  }
  return owner;
}

}  // namespace tpudist
