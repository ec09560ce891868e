#include "core/random.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <vector>

namespace tpudist {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Pearson's statistic of counts that should all be equal.
template <typename Counts>
double chi_square(const Counts& counts, double expected) {
  double sum = 0;
  for (const double count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

// The same of the counts of `kinds` outcomes, each of which must have come.
template <typename Outcome>
double chi_square(const std::map<Outcome, double>& counts, std::size_t kinds, double expected) {
  EXPECT_EQ(counts.size(), kinds);
  std::vector<double> flat;
  for (const auto& [outcome, count] : counts) flat.push_back(count);
  return chi_square(flat, expected);
}

// A bound that the statistic of a fair source passes with a probability below 1e-6 (the keys are
// fixed, so a test that passed passes again).
double chi_square_bound(double freedom) {
  return freedom + 6 * std::sqrt(2 * freedom) + 10;
}

TEST(Philox, MatchesThePublishedVectors) {
  // kat_vectors of the authors' library Random123, philox4x32-10.
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(MixKey, DependsOnEveryPartAndTheOrder) {
  std::set<std::uint64_t> keys = {mix_key({})};
  const std::uint64_t n = 20;
  for (std::uint64_t i = 0; i < n; ++i) {
    keys.insert(mix_key({i}));
    for (std::uint64_t j = 0; j < n; ++j) {
      keys.insert(mix_key({i, j}));
      for (std::uint64_t k = 0; k < n; ++k) keys.insert(mix_key({i, j, k}));
    }
  }
  EXPECT_EQ(keys.size(), 1 + n + n * n + n * n * n);
}

TEST(MixKey, ChangesHalfOfTheBits) {
  double changed = 0;
  for (int bit = 0; bit < 64; ++bit) {
    changed += std::popcount(mix_key({1, 2}) ^ mix_key({1 ^ std::uint64_t{1} << bit, 2}));
  }
  EXPECT_NEAR(changed / 64, 32, 3);
}

TEST(CounterRng, IsAFunctionOfKeyAndStream) {
  CounterRng one(7, 3), same(7, 3), other_key(8, 3), other_stream(7, 4);
  const std::uint64_t first = one.next_u64();
  EXPECT_EQ(same.next_u64(), first);
  EXPECT_NE(other_key.next_u64(), first);
  EXPECT_NE(other_stream.next_u64(), first);
}

TEST(CounterRng, IsPhiloxWithTheBlockAsCounter) {
  CounterRng rng(0xa4093822u | std::uint64_t{0x299f31d0} << 32, 5);
  for (std::uint32_t block = 0; block < 3; ++block) {
    const Words words = philox4x32({block, 0, 5, 0}, {0xa4093822, 0x299f31d0});
    for (const std::uint32_t word : words) EXPECT_EQ(rng.next_u32(), word);
  }
}

TEST(CounterRng, UniformFillsTheUnitInterval) {
  CounterRng rng(1);
  std::vector<double> counts(50);
  for (int i = 0; i < 100'000; ++i) {
    const double value = rng.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    ++counts[static_cast<std::size_t>(value * 50)];
  }
  EXPECT_LT(chi_square(counts, 2000), chi_square_bound(49));
}

TEST(CounterRng, UniformTakesBounds) {
  CounterRng rng(2);
  for (int i = 0; i < 1000; ++i) {
    const double value = rng.uniform(-3, -1);
    ASSERT_GE(value, -3);
    ASSERT_LT(value, -1);
  }
}

TEST(CounterRng, BelowIsFair) {
  CounterRng rng(3);
  std::vector<double> counts(7);
  for (int i = 0; i < 70'000; ++i) ++counts[rng.below(7)];
  EXPECT_LT(chi_square(counts, 10'000), chi_square_bound(6));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(rng.below(1), 0u);
}

TEST(CounterRng, BelowIsFairForHugeIntervals) {
  // A plain product without rejection would hit one third of this interval twice as often.
  const std::uint64_t third = std::uint64_t{1} << 62;
  CounterRng rng(4);
  std::vector<double> counts(3);
  for (int i = 0; i < 30'000; ++i) {
    const std::uint64_t value = rng.below(3 * third);
    ASSERT_LT(value, 3 * third);
    ++counts[value / third];
    ASSERT_LT(rng.below(~std::uint64_t{0}), ~std::uint64_t{0});
  }
  EXPECT_LT(chi_square(counts, 10'000), chi_square_bound(2));
}

TEST(CounterRng, NormalHasTheMomentsOfOne) {
  CounterRng rng(5);
  const int count = 200'000;
  double sum = 0, squares = 0, fourths = 0;
  for (int i = 0; i < count; ++i) {
    const double value = rng.normal();
    sum += value;
    squares += value * value;
    fourths += value * value * value * value;
  }
  EXPECT_NEAR(sum / count, 0, 0.015);
  EXPECT_NEAR(squares / count, 1, 0.02);
  EXPECT_NEAR(fourths / count, 3, 0.15);
}

TEST(CounterRng, ShuffleReachesEveryOrderEqually) {
  std::map<std::vector<int>, double> counts;
  for (std::uint64_t key = 0; key < 24'000; ++key) {
    std::vector<int> values = {0, 1, 2, 3};
    CounterRng(mix_key({key})).shuffle(std::span(values));
    ++counts[values];
  }
  EXPECT_LT(chi_square(counts, 24, 1000), chi_square_bound(23));
}

std::vector<std::uint64_t> values_of(const KeyedPermutation& permutation) {
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = 0; i < permutation.size(); ++i) values.push_back(permutation(i));
  return values;
}

bool is_permutation(std::vector<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    if (values[i] != i) return false;
  }
  return true;
}

TEST(KeyedPermutation, IsOneForEverySmallSize) {
  for (std::uint64_t n = 0; n <= 300; ++n) {
    ASSERT_TRUE(is_permutation(values_of(KeyedPermutation(n, n * 31)))) << n;
  }
}

TEST(KeyedPermutation, IsOneForTheLargestGraph) {
  EXPECT_TRUE(is_permutation(values_of(KeyedPermutation(100'040, 1))));
  EXPECT_TRUE(is_permutation(values_of(KeyedPermutation((1 << 16) + 1, 2))));
}

RC_GTEST_PROP(KeyedPermutation, StaysInRangeAndApartForHugeSizes, (std::uint64_t key)) {
  const std::uint64_t n =
      *rc::gen::element(~std::uint64_t{0}, (std::uint64_t{1} << 62) + 1, std::uint64_t{1} << 62,
                        std::uint64_t{1} << 63, std::uint64_t{1'000'000'007});
  const KeyedPermutation permutation(n, key);
  std::set<std::uint64_t> values;
  for (std::uint64_t i = 0; i < 100; ++i) {
    values.insert(permutation(i));
    values.insert(permutation(n - 1 - i));
  }
  RC_ASSERT(values.size() == 200u);
  RC_ASSERT(*values.rbegin() < n);
}

TEST(KeyedPermutation, PutsEveryIndexEverywhereEqually) {
  const std::uint64_t n = 10;
  const int keys = 20'000;
  std::vector<double> counts(n * n);
  for (int key = 0; key < keys; ++key) {
    const KeyedPermutation permutation(n, static_cast<std::uint64_t>(key));
    for (std::uint64_t i = 0; i < n; ++i) ++counts[i * n + permutation(i)];
  }
  EXPECT_LT(chi_square(counts, keys / 10.), chi_square_bound(81));
}

TEST(KeyedPermutation, ReachesEveryOrderOfAFewEqually) {
  for (const auto& [n, orders] : {std::pair{2, 2}, {3, 6}, {4, 24}}) {
    std::map<std::vector<std::uint64_t>, double> counts;
    for (std::uint64_t key = 0; key < 24'000; ++key) {
      ++counts[values_of(KeyedPermutation(static_cast<std::uint64_t>(n), key))];
    }
    EXPECT_LT(chi_square(counts, static_cast<std::size_t>(orders), 24'000. / orders),
              chi_square_bound(orders - 1))
        << n;
  }
}

TEST(KeyedPermutation, SpreadsNeighbours) {
  // The first half of the positions takes about a half of the first half of the values.
  const std::uint64_t n = 1000;
  for (std::uint64_t key = 0; key < 20; ++key) {
    const KeyedPermutation permutation(n, key);
    int low = 0;
    for (std::uint64_t i = 0; i < n / 2; ++i) low += permutation(i) < n / 2;
    EXPECT_NEAR(low, 250, 45);
  }
}

// Runs on disk name their order of samples by seed alone: a change of these numbers makes them
// impossible to resume or repeat.
TEST(Random, NumbersStayTheSame) {
  EXPECT_EQ(mix_key({1, 2, 3}), 10161202826963666825u);
  EXPECT_EQ(CounterRng(1, 2).next_u64(), 10154990248698053839u);
  EXPECT_THAT(values_of(KeyedPermutation(8, 5)), ::testing::ElementsAre(2, 3, 5, 4, 0, 6, 1, 7));
}

}  // namespace
}  // namespace tpudist
