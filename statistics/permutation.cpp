#include "statistics/permutation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "core/random.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;

constexpr double kMostCounted = 1 << 21;
constexpr int kDraws = 99'999;
// Sums of the same values in another order differ by rounding; they count as equal.
constexpr double kRounding = 1e-12;

// The pooled values of a group, the first ones labelled a.
struct Pool {
  Values values;
  std::size_t a = 0;
  double total = 0, of_a = 0,
         constant = 0;  // difference = of_a x sum of those labelled a - constant

  explicit Pool(const LabelGroup& group) : values(group.a), a(group.a.size()) {
    if (group.a.empty() || group.b.empty())
      throw Error(ErrorKind::failed, "a group of labels has one side only");
    values.insert(values.end(), group.b.begin(), group.b.end());
    for (const double value : values) {
      if (!std::isfinite(value)) throw DataError(fmt::format("{} cannot be compared", value));
      total += value;
    }
    const auto others = static_cast<double>(group.b.size());
    of_a = group.weight * (1 / static_cast<double>(a) + 1 / others);
    constant = group.weight * total / others;
  }

  double difference() const {
    return of_a * std::accumulate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(a),
                                  0.0) -
           constant;
  }

  // Binomial coefficient: how many labellings the group has.
  double labellings() const {
    double count = 1;
    for (std::size_t i = 1; i <= a; ++i)
      count =
          std::round(count * static_cast<double>(values.size() - a + i) / static_cast<double>(i));
    return count;
  }

  // The difference of every labelling.
  Values differences() const {
    Values result;
    choose(0, a, 0, result);
    return result;
  }

 private:
  void choose(std::size_t next, std::size_t left, double sum, Values& result) const {
    if (left == 0) {
      result.push_back(of_a * sum - constant);
      return;
    }
    for (std::size_t i = next; i + left <= values.size(); ++i)
      choose(i + 1, left - 1, sum + values[i], result);
  }
};

Values all_sums(const Values& first, const Values& second) {
  Values sums;
  sums.reserve(first.size() * second.size());
  for (const double x : first) {
    for (const double y : second) sums.push_back(x + y);
  }
  return sums;
}

// How many sums of one of each are at least `bound` away from 0.
double count_beyond(Values first, Values second, double bound) {
  std::ranges::sort(first);
  std::ranges::sort(second);
  double count = 0;
  auto above = second.end(), below = second.end();  // as x rises, both move to the front
  for (const double x : first) {
    while (above != second.begin() && x + *std::prev(above) >= bound) --above;
    while (below != second.begin() && x + *std::prev(below) > -bound) --below;
    count += static_cast<double>(std::distance(above, second.end())) +
             static_cast<double>(std::distance(second.begin(), below));
  }
  return count;
}

// Groups dealt out to two halves of at most kMostCounted sums; false where that cannot be.
bool halve(const std::vector<Pool>& pools, Values& first, Values& second) {
  first = second = {0};
  for (const Pool& pool : pools) {
    Values& smaller = first.size() <= second.size() ? first : second;
    if (pool.labellings() * static_cast<double>(smaller.size()) > kMostCounted) return false;
    smaller = all_sums(smaller, pool.differences());
  }
  return true;
}

double drawn_p(std::vector<Pool> pools, double bound, std::uint64_t key) {
  CounterRng random(key);
  int beyond = 1;
  for (int i = 0; i < kDraws; ++i) {
    double difference = 0;
    for (Pool& pool : pools) {
      random.shuffle(std::span(pool.values));
      difference += pool.difference();
    }
    if (std::abs(difference) >= bound) ++beyond;
  }
  return static_cast<double>(beyond) / (kDraws + 1);
}

}  // namespace

PermutationTest permutation_test(std::span<const LabelGroup> groups, std::uint64_t key) {
  PermutationTest test;
  std::vector<Pool> pools;
  double size = 0;
  bool mirrored = true;
  for (const LabelGroup& group : groups) {
    pools.emplace_back(group);
    test.difference += pools.back().difference();
    test.labellings *= pools.back().labellings();
    mirrored = mirrored && group.a.size() == group.b.size();
    for (const double value : pools.back().values) size += std::abs(group.weight * value);
  }
  test.smallest_p = std::min(1.0, (mirrored ? 2 : 1) / test.labellings);
  // A bound of 0 or below would count sums beyond both of its ends twice.
  const double bound = std::abs(test.difference) - kRounding * size;
  if (bound <= 0) return test;
  Values first, second;
  test.exact = halve(pools, first, second);
  test.p = test.exact ? count_beyond(std::move(first), std::move(second), bound) / test.labellings
                      : drawn_p(std::move(pools), bound, key);
  return test;
}

}  // namespace tpudist
