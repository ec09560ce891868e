#include "dist/collectives/assignment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>
#include <utility>

#include "core/error.hpp"

namespace tpudist {
namespace {

constexpr double kTolerance = 0.04;  // of the mean load, for a rank that has the unit

// The sum of the costs; throws where one is none.
double total_cost(std::span<const WorkItem> items) {
  double total = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    total += items[i].cost;
    if (!(items[i].cost >= 0) || !std::isfinite(total)) {
      throw DistError(fmt::format("assign_by_cost: cost {} of item {} is not usable (total {})",
                                  items[i].cost, i, total));
    }
  }
  return total;
}

}  // namespace

std::vector<int> assign_by_cost(std::span<const WorkItem> items, int ranks) {
  if (ranks < 1) throw DistError(fmt::format("assign_by_cost: {} ranks", ranks));
  const double total = total_cost(items);
  const auto cost = [&](std::size_t i) { return total > 0 ? items[i].cost : 1.0; };
  const double mean = (total > 0 ? total : static_cast<double>(items.size())) / ranks;

  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return std::pair(-cost(i), items[i].unit); });

  int units = 0;
  for (const WorkItem& item : items) units = std::max(units, item.unit + 1);
  const auto width = static_cast<std::size_t>(ranks);
  std::vector<bool> has(static_cast<std::size_t>(units) * width);  // [units, ranks]
  std::vector<double> load(width);
  std::vector<std::size_t> taken_by;  // in `order`
  for (const std::size_t i : order) {
    const std::size_t unit = static_cast<std::size_t>(items[i].unit) * width;
    const auto worse = [&](std::size_t rank) {
      const bool stays = has[unit + rank] && load[rank] + cost(i) <= (1 + kTolerance) * mean;
      return std::pair(!stays, load[rank]);
    };
    const std::size_t rank =
        *std::ranges::min_element(std::views::iota(std::size_t{0}, width), {}, worse);
    has[unit + rank] = true;
    load[rank] += cost(i);
    taken_by.push_back(rank);
  }

  // Equal items change places.
  std::vector<int> owner(items.size());
  for (std::size_t first = 0, next = 0; first < order.size(); first = next) {
    while (next < order.size() && cost(order[next]) == cost(order[first])) ++next;
    std::sort(taken_by.begin() + first, taken_by.begin() + next);
    for (std::size_t i = first; i < next; ++i) owner[order[i]] = static_cast<int>(taken_by[i]);
  }
  return owner;
}

}  // namespace tpudist
