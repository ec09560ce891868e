#include "statistics/ranking/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/means.hpp"

namespace tpudist {
namespace {

void check_values(std::span<const double> values, std::string_view what) {
  const auto bad = std::ranges::find_if(values, [](double v) { return std::isnan(v); });
  if (bad == values.end()) return;
  throw DataError("a ranking metric got NaN in its " + std::string(what) + " at index " +
                  std::to_string(bad - values.begin()) +
                  ": the model diverged, or the input holds NaN");
}

void check_pair(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) {
    throw Error(ErrorKind::failed, "a ranking metric got " + std::to_string(a.size()) +
                                       " scores but " + std::to_string(b.size()) + " targets");
  }
  check_values(a, "first values (scores)");
  check_values(b, "second values (targets)");
}

std::int64_t pairs_of(std::int64_t n) {
  return n * (n - 1) / 2;
}

// Number of pairs of equal elements in a sequence in which equal elements are adjacent.
template <typename Equal>
std::int64_t tied_pairs(std::int64_t n, Equal equal) {
  std::int64_t pairs = 0, run = 0;
  for (std::int64_t i = 1; i < n; ++i) {
    run = equal(i - 1, i) ? run + 1 : 0;
    pairs += run;
  }
  return pairs;
}

// Sorts `values` (`spare` is as long) and returns its number of inversions, i < j with values[i] >
// values[j].
std::int64_t sort_counting_inversions(std::span<std::int32_t> values,
                                      std::span<std::int32_t> spare) {
  constexpr std::size_t kInsertion = 16;
  const std::size_t n = values.size();
  std::int64_t inversions = 0;
  if (n <= kInsertion) {
    for (std::size_t i = 1; i < n; ++i) {
      const std::int32_t value = values[i];
      std::size_t at = i;
      for (; at > 0 && values[at - 1] > value; --at) values[at] = values[at - 1];
      values[at] = value;
      inversions += static_cast<std::int64_t>(i - at);
    }
    return inversions;
  }
  const auto left = values.first(n / 2), right = values.subspan(n / 2);
  inversions += sort_counting_inversions(left, spare.first(n / 2));
  inversions += sort_counting_inversions(right, spare.subspan(n / 2));
  std::size_t l = 0, r = 0;
  for (std::size_t out = 0; out < n; ++out) {
    const bool take_right = l == left.size() || (r < right.size() && right[r] < left[l]);
    // A value from the right half passes all remaining values of the left half.
    if (take_right) inversions += static_cast<std::int64_t>(left.size() - l);
    spare[out] = take_right ? right[r++] : left[l++];
  }
  std::ranges::copy(spare.first(n), values.begin());
  return inversions;
}

// How the pairs of two rankings agree.
struct PairCounts {
  std::int64_t all = 0, tied_x = 0, tied_y = 0, tied_both = 0, discordant = 0;
  std::int64_t concordant() const { return all - tied_x - tied_y + tied_both - discordant; }
};

PairCounts count_pairs(std::span<const double> x, std::span<const double> y) {
  check_pair(x, y);
  const std::size_t size = x.size();
  const auto n = static_cast<std::int64_t>(size);
  const std::vector<std::int32_t> rank_x = dense_ranks(x), rank_y = dense_ranks(y);

  // One word per element sorts by x, then by y.
  std::vector<std::uint64_t> keys(size);
  for (std::size_t i = 0; i < size; ++i) {
    keys[i] = std::uint64_t{static_cast<std::uint32_t>(rank_x[i])} << 32 |
              static_cast<std::uint32_t>(rank_y[i]);
  }
  std::ranges::sort(keys);

  PairCounts counts;
  counts.all = pairs_of(n);
  counts.tied_x = tied_pairs(n, [&](auto i, auto j) { return keys[i] >> 32 == keys[j] >> 32; });
  counts.tied_both = tied_pairs(n, [&](auto i, auto j) { return keys[i] == keys[j]; });

  std::vector<std::int32_t> values(size), spare(size);
  for (std::size_t i = 0; i < size; ++i)
    values[i] = static_cast<std::int32_t>(keys[i] & 0xFFFFFFFF);
  counts.discordant = sort_counting_inversions(values, spare);
  counts.tied_y = tied_pairs(n, [&](auto i, auto j) { return values[i] == values[j]; });
  return counts;
}

// Best target among the k lowest scores / best target; NaN as in the header.
double best_chosen_ratio(std::span<const double> score, std::span<const double> target,
                         std::int64_t k) {
  check_pair(score, target);
  if (k < 1)
    throw Error(ErrorKind::failed, "slowdown at top " + std::to_string(k) + " is undefined");
  if (score.empty()) return kNone;
  std::vector<std::size_t> order(score.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t chosen = std::min(static_cast<std::size_t>(k), order.size());
  const auto lowest = std::span(order).first(chosen);
  std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(chosen - 1),
                           [&](std::size_t a, std::size_t b) {
                             return score[a] != score[b] ? score[a] < score[b] : a < b;
                           });
  double best_chosen = target[lowest[0]];
  for (const std::size_t i : lowest) best_chosen = std::min(best_chosen, target[i]);
  const double best = *std::ranges::min_element(target);
  return best > 0 ? best_chosen / best : kNone;
}

}  // namespace

double kendall_tau_b(std::span<const double> x, std::span<const double> y) {
  const PairCounts c = count_pairs(x, y);
  if (c.all == c.tied_x || c.all == c.tied_y) return kNone;
  // The order of operations is SciPy's, so the bits are the same.
  const auto difference = static_cast<double>(c.concordant() - c.discordant);
  const double tau = difference / std::sqrt(static_cast<double>(c.all - c.tied_x)) /
                     std::sqrt(static_cast<double>(c.all - c.tied_y));
  return std::clamp(tau, -1.0, 1.0);
}

double ordered_pair_accuracy(std::span<const double> score, std::span<const double> target) {
  const PairCounts c = count_pairs(score, target);
  if (c.all == c.tied_y) return kNone;
  return static_cast<double>(c.concordant()) / static_cast<double>(c.all - c.tied_y);
}

double slowdown_at(std::span<const double> score, std::span<const double> target, std::int64_t k) {
  return best_chosen_ratio(score, target, k) - 1;
}

double tile_score(std::span<const double> score, std::span<const double> target) {
  return 2 - best_chosen_ratio(score, target, 5);
}

}  // namespace tpudist
