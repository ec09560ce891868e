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

void each_config(std::span<const std::int32_t> config,
                 const std::function<void(std::span<const std::size_t>)>& visit) {
  std::vector<std::size_t> rows(config.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::ranges::stable_sort(rows, {}, [&](std::size_t i) { return config[i]; });
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && config[rows[end]] == config[rows[begin]]) ++end;
    visit(std::span(rows).subspan(begin, end - begin));
  }
}
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

namespace {

// Counts of pairs, of one row or within a set of rows: concordant minus discordant, and tied.
struct Pairs {
  std::int64_t all = 0, difference = 0, tied_x = 0, tied_y = 0;

  Pairs& operator+=(const Pairs& other) {
    all += other.all;
    difference += other.difference;
    tied_x += other.tied_x;
    tied_y += other.tied_y;
    return *this;
  }
  Pairs operator-(const Pairs& other) const {
    return {all - other.all, difference - other.difference, tied_x - other.tied_x,
            tied_y - other.tied_y};
  }
  double tau_b() const {
    const double product =
        std::sqrt(static_cast<double>(all - tied_x)) * std::sqrt(static_cast<double>(all - tied_y));
    return product > 0 ? static_cast<double>(difference) / product : kNone;
  }
};

// Counts the added values below a rank (Fenwick, "A new data structure for cumulative frequency
// tables", 1994).
class RankCounter {
 public:
  explicit RankCounter(std::size_t ranks) : sums_(ranks + 1) {}
  void add(std::int32_t rank) {
    for (auto i = static_cast<std::size_t>(rank) + 1; i < sums_.size(); i += i & (~i + 1))
      ++sums_[i];
  }
  std::int64_t below(std::int32_t rank) const {
    std::int64_t sum = 0;
    for (auto i = static_cast<std::size_t>(rank); i > 0; i -= i & (~i + 1)) sum += sums_[i];
    return sum;
  }

 private:
  std::vector<std::int64_t> sums_;
};

// A column as dense ranks: equal values share a rank.
struct Ranks {
  std::vector<std::int32_t> of;      // [n]
  std::vector<std::int64_t> counts;  // [ranks]
};

Ranks tie_ranks_of(std::span<const double> values) {
  Ranks ranks{dense_ranks(values), {}};
  if (!values.empty()) ranks.counts.resize(std::ranges::max(ranks.of) + 1);
  for (const std::int32_t rank : ranks.of) ++ranks.counts[static_cast<std::size_t>(rank)];
  return ranks;
}

// Adds each row's pairs with rows of smaller x to the row's difference (with both columns reversed:
// of larger x). `order`: rows by ascending x.
void count_smaller(const std::vector<std::int32_t>& order, const Ranks& x, const Ranks& y,
                   std::vector<Pairs>& pairs) {
  RankCounter counter(y.counts.size());
  std::int64_t added = 0;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const auto at = [](std::int32_t row) { return static_cast<std::size_t>(row); };
    while (end < order.size() && x.of[at(order[end])] == x.of[at(order[begin])]) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      const std::int32_t rank = y.of[at(order[i])];
      pairs[at(order[i])].difference += counter.below(rank) - (added - counter.below(rank + 1));
    }
    for (std::size_t i = begin; i < end; ++i) counter.add(y.of[at(order[i])]);
    added += static_cast<std::int64_t>(end - begin);
  }
}

Ranks reversed(Ranks ranks) {
  const auto last = static_cast<std::int32_t>(ranks.counts.size()) - 1;
  for (std::int32_t& rank : ranks.of) rank = last - rank;
  std::ranges::reverse(ranks.counts);
  return ranks;
}

// [n] the pairs of each row with all others.
std::vector<Pairs> pairs_of_rows(std::span<const double> x, std::span<const double> y) {
  const Ranks rank_x = tie_ranks_of(x), rank_y = tie_ranks_of(y);
  std::vector<Pairs> pairs(x.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].all = std::ssize(pairs) - 1;
    pairs[i].tied_x = rank_x.counts[static_cast<std::size_t>(rank_x.of[i])] - 1;
    pairs[i].tied_y = rank_y.counts[static_cast<std::size_t>(rank_y.of[i])] - 1;
  }
  std::vector<std::int32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {},
                    [&](std::int32_t i) { return rank_x.of[static_cast<std::size_t>(i)]; });
  count_smaller(order, rank_x, rank_y, pairs);
  std::ranges::reverse(order);
  count_smaller(order, reversed(rank_x), reversed(rank_y), pairs);
  return pairs;
}

Pairs halved(const Pairs& twice) {
  return {twice.all / 2, twice.difference / 2, twice.tied_x / 2, twice.tied_y / 2};
}

// The pairs among some rows.
Pairs pairs_among(std::span<const double> x, std::span<const double> y) {
  Pairs twice;
  for (const Pairs& row : pairs_of_rows(x, y)) twice += row;
  return halved(twice);
}

void check(std::span<const double> values, std::size_t n, std::size_t configs) {
  if (values.size() != n || (configs != 0 && configs != n))
    throw Error(ErrorKind::failed, "rankings of one graph must be of equal length");
  const auto bad = std::ranges::find_if(values, [](double v) { return std::isnan(v); });
  if (bad != values.end()) {
    throw DataError("a ranking holds NaN at index " + std::to_string(bad - values.begin()) +
                    ": the model diverged, or the input holds NaN");
  }
}

// As each_config; without `config` each row is a configuration.
template <typename Visit>
void each_config_or_row(std::size_t n, std::span<const std::int32_t> config, const Visit& visit) {
  std::vector<std::int32_t> all_differ(config.empty() ? n : 0);
  std::iota(all_differ.begin(), all_differ.end(), 0);
  each_config(config.empty() ? all_differ : config, visit);
}

std::vector<double> chosen(std::span<const double> values, std::span<const std::size_t> rows) {
  std::vector<double> result;
  for (const std::size_t row : rows) result.push_back(values[row]);
  return result;
}

}  // namespace

double tau_sampling_deviation(std::span<const double> x, std::span<const double> y,
                              std::span<const std::int32_t> config) {
  check(x, y.size(), config.size());
  check(y, x.size(), config.size());
  const std::vector<Pairs> rows = pairs_of_rows(x, y);
  Pairs twice;
  for (const Pairs& row : rows) twice += row;
  const Pairs all = halved(twice);
  std::vector<double> without;
  each_config_or_row(x.size(), config, [&](std::span<const std::size_t> own) {
    // Each pair within the configuration was counted twice, once for each row.
    Pairs gone;
    for (const std::size_t row : own) gone += rows[row];
    if (own.size() > 1) gone = gone - pairs_among(chosen(x, own), chosen(y, own));
    without.push_back((all - gone).tau_b());
  });
  const auto configs = static_cast<double>(without.size());
  if (configs < 3) return kNone;
  return std::sqrt((configs - 1) / configs * squares_around(without, mean(without)));
}

double tied_pair_share(std::span<const double> scores, std::span<const std::int32_t> config) {
  check(scores, scores.size(), config.size());
  const auto tied_among = [&](std::span<const double> values) {
    std::int64_t tied = 0;
    for (const std::int64_t count : tie_ranks_of(values).counts) tied += pairs_of(count);
    return tied;
  };
  std::int64_t all = pairs_of(std::ssize(scores)), tied = tied_among(scores);
  each_config_or_row(scores.size(), config, [&](std::span<const std::size_t> own) {
    if (own.size() < 2) return;
    all -= pairs_of(std::ssize(own));
    tied -= tied_among(chosen(scores, own));
  });
  return all > 0 ? static_cast<double>(tied) / static_cast<double>(all) : kNone;
}

}  // namespace tpudist
