#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace tpudist {

// Differences with a p above this are not called different.
inline constexpr double kSignificance = 0.05;

// The result of a permutation test: the probability of so large a difference if labels have no
// meaning. It depends neither on the order of values nor on which side is called A.
struct PermutationTest {
  double p = 1;           // two-sided: the share of labellings with at least this statistic
  double labellings = 1;  // number of labellings
  // The smallest p that any values could give: two labellings out of all if mirroring one gives
  // another, else one. If it is above the level, the test cannot find anything.
  double smallest_p = 1;
  bool exact = true;  // all labellings were counted; otherwise p comes from 99,999 drawn ones and
                      // the observed one

  bool can_tell(double significance = kSignificance) const { return smallest_p <= significance; }
};

// "Are the labels of runs exchangeable?" Exact permutation test of Welch's t (Janssen, Statistics &
// Probability Letters 1997). It is studentised: exact where the spreads of A and B are equal, and
// valid for many runs where they differ. Counts all labellings up to four million; beyond, draws by
// `key`.
//
// Nothing where the test is not valid: a side with one run, or a side with fewer than 10 runs
// while standard deviations or run counts differ by more than 3 to 1: of 5 and 5 runs with spreads of
// 5 to 1, p would be below 0.05 for 8.6 % of equal sides. Throws Error where a side is empty,
// and DataError where a value is not finite.
std::optional<PermutationTest> label_test(std::span<const double> a, std::span<const double> b,
                                          std::uint64_t key);

// "Could each value equally well have the opposite sign?" Exact test of the sum with signs flipped.
// Counts all sign patterns up to 42 values; beyond, draws by `key`. Throws as label_test.
PermutationTest sign_test(std::span<const double> values, std::uint64_t key);

}  // namespace tpudist
