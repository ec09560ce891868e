#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace tpudist {

// Differences with a p above this are not called different.
inline constexpr double kSignificance = 0.05;

// The result of a permutation test: the probability of a difference as large as the observed one if
// labels have no meaning. Neither the order of values nor the choice of side A matters.
struct PermutationTest {
  double p = 1;           // two-sided: the share of labellings with a statistic at least as large
  double labellings = 1;  // number of labellings
  // The smallest p that any values could give: 2 / labellings if mirroring a labelling gives
  // another one, else 1 / labellings. If it is above the level, the test cannot find anything.
  double smallest_p = 1;
  bool exact = true;  // p counts all labellings; otherwise 99,999 drawn ones and
                      // the observed one

  bool can_tell(double significance = kSignificance) const { return smallest_p <= significance; }
};

// "Are the labels of runs exchangeable?" Exact permutation test of Welch's t (Janssen, Statistics &
// Probability Letters 1997). Studentised: exact if the spreads of A and B are equal, and valid for
// many runs if they differ. Counts all labellings up to four million; beyond, draws by `key`.
//
// Nothing if the test is invalid: a side has one run, or a side has fewer than 10 runs and standard
// deviations or run counts differ by more than 3 to 1. For 5 and 5 runs with spreads of 5 to 1, p
// would be below 0.05 for 8.6 % of equal sides. Throws Error if a side is empty, and DataError if a
// value is not finite.
std::optional<PermutationTest> label_test(std::span<const double> a, std::span<const double> b,
                                          std::uint64_t key);

// "Could each value equally well have the opposite sign?" Exact test of the sum with signs flipped.
// Counts all sign patterns up to 42 values; beyond, draws by `key`. Throws as label_test.
PermutationTest sign_test(std::span<const double> values, std::uint64_t key);

}  // namespace tpudist
