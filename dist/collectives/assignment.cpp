#include "dist/collectives/assignment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.hpp"

namespace tpudist {
namespace {

constexpr double kTolerance = 0.04;  // of the mean load, for a rank that has the unit
constexpr std::size_t kMostExchanged = 200;

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

// Up to `ranks` times: the most expensive rank gives an item to another rank, for an item of that
// rank or for none, whatever lowers the higher cost of the two most.
void exchange(std::span<const WorkItem> items, int ranks, const RankCost& together,
              std::vector<int>& owner) {
  constexpr std::size_t kNoItem = -1;
  std::vector<std::vector<std::size_t>> own;  // [ranks] items
  std::vector<WorkItem> list;
  const auto cost_of = [&](int rank, std::size_t given, std::size_t taken) {
    list.clear();
    for (const std::size_t i : own[rank])
      if (i != given) list.push_back(items[i]);
    if (taken != kNoItem) list.push_back(items[taken]);
    return together(list);
  };
  for (int round = 0; round < ranks; ++round) {
    own.assign(static_cast<std::size_t>(ranks), {});
    for (std::size_t i = 0; i < items.size(); ++i) own[owner[i]].push_back(i);
    std::vector<double> cost;
    for (int rank = 0; rank < ranks; ++rank) cost.push_back(cost_of(rank, kNoItem, kNoItem));
    const int from = static_cast<int>(std::ranges::max_element(cost) - cost.begin());
    double best = cost[from] * (1 - 1e-9);  // more than rounding
    std::size_t given = kNoItem, taken = kNoItem;
    int receiver = from;
    for (const std::size_t i : own[from]) {
      for (int to = 0; to < ranks; ++to) {
        if (to == from) continue;
        for (std::size_t j = 0; j <= own[to].size(); ++j) {
          const std::size_t back = j < own[to].size() ? own[to][j] : kNoItem;
          const double left = cost_of(from, i, back);
          if (left >= best) continue;
          const double higher = std::max(left, cost_of(to, back, i));
          if (higher >= best) continue;
          best = higher;
          given = i, taken = back, receiver = to;
        }
      }
    }
    if (given == kNoItem) return;
    owner[given] = receiver;
    if (taken != kNoItem) owner[taken] = from;
  }
}

}  // namespace

std::vector<int> assign_by_cost(std::span<const WorkItem> given, int ranks,
                                const RankCost& together) {
  if (ranks < 1) throw DistError(fmt::format("assign_by_cost: {} ranks", ranks));
  std::vector<WorkItem> items(given.begin(), given.end());
  double total = total_cost(items);
  if (total <= 0) {
    for (WorkItem& item : items) item.cost = 1;
    total = static_cast<double>(items.size());
  }
  const double most = (1 + kTolerance) * total / ranks;

  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return std::pair(-items[i].cost, items[i].unit); });

  int units = 0;
  for (const WorkItem& item : items) units = std::max(units, item.unit + 1);
  const auto width = static_cast<std::size_t>(ranks);
  std::vector<bool> has(static_cast<std::size_t>(units) * width);  // [units, ranks]
  std::vector<double> load(width);
  std::vector<std::vector<WorkItem>> own(width);
  std::vector<std::size_t> taken_by;  // in `order`
  for (const std::size_t i : order) {
    const std::size_t unit = static_cast<std::size_t>(items[i].unit) * width;
    std::vector<std::pair<bool, double>> worse;  // [ranks] with the item
    for (std::size_t rank = 0; rank < width; ++rank) {
      own[rank].push_back(items[i]);
      const double cost = together ? together(own[rank]) : load[rank] + items[i].cost;
      own[rank].pop_back();
      worse.emplace_back(!(has[unit + rank] && cost <= most), cost);
    }
    const auto rank = static_cast<std::size_t>(std::ranges::min_element(worse) - worse.begin());
    has[unit + rank] = true;
    load[rank] = worse[rank].second;
    own[rank].push_back(items[i]);
    taken_by.push_back(rank);
  }

  std::vector<int> owner(items.size());
  // Equal items change places.
  for (std::size_t first = 0, next = 0; first < order.size(); first = next) {
    while (next < order.size() && items[order[next]].cost == items[order[first]].cost) ++next;
    if (!together) std::sort(taken_by.begin() + first, taken_by.begin() + next);
    for (std::size_t i = first; i < next; ++i) owner[order[i]] = static_cast<int>(taken_by[i]);
  }
  if (together && items.size() <= kMostExchanged) exchange(items, ranks, together, owner);
  return owner;
}

}  // namespace tpudist
