#include "statistics/noise/rank_sampling.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/means.hpp"
#include "statistics/noise/measured_configs.hpp"

namespace tpudist {
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

// As each_config of measured_configs.hpp; without `config` each row is a configuration.
template <typename Visit>
void each_config(std::size_t n, std::span<const std::int32_t> config, const Visit& visit) {
  std::vector<std::int32_t> all_differ(config.empty() ? n : 0);
  std::iota(all_differ.begin(), all_differ.end(), 0);
  tpudist::each_config(config.empty() ? all_differ : config, visit);
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
  each_config(x.size(), config, [&](std::span<const std::size_t> own) {
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
  const auto pairs = [](std::int64_t n) { return n * (n - 1) / 2; };
  const auto tied_among = [&](std::span<const double> values) {
    std::int64_t tied = 0;
    for (const std::int64_t count : tie_ranks_of(values).counts) tied += pairs(count);
    return tied;
  };
  std::int64_t all = pairs(std::ssize(scores)), tied = tied_among(scores);
  each_config(scores.size(), config, [&](std::span<const std::size_t> own) {
    if (own.size() < 2) return;
    all -= pairs(std::ssize(own));
    tied -= tied_among(chosen(scores, own));
  });
  return all > 0 ? static_cast<double>(tied) / static_cast<double>(all) : kNone;
}

}  // namespace tpudist
