#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tpudist {

// The p above which nothing is called a difference.
inline constexpr double kSignificance = 0.05;

// How probable so large a difference is when labels say nothing. It depends neither on the order of
// values nor on which side is called A.
struct PermutationTest {
  double p = 1;           // two-sided: the share of labellings with at least this statistic
  double labellings = 1;  // how many there are
  // The least p that any values could have: two of the labellings where mirroring gives one, else
  // one. Above kSignificance the test cannot say anything.
  double smallest_p = 1;
  bool exact = true;  // all labellings counted; else p comes from 99,999 drawn ones and the own

  bool can_tell() const { return smallest_p <= kSignificance; }
};

// "Could these labels of runs be exchanged?" Exact permutation test of Welch's t (Janssen,
// Statistics & Probability Letters 1997): studentised, so that it holds for many runs where the
// spreads of A and B differ, and exactly where they do not. Counts all labellings up to four
// million, else draws by `key`.
//
// Nothing where it does not hold: a side of one run; a side of fewer than 5 runs beside standard
// deviations or numbers of runs that differ by more than 3 to 1. Throws Error where a side is
// empty, and DataError where a value is not finite.
std::optional<PermutationTest> label_test(std::span<const double> a, std::span<const double> b,
                                          std::uint64_t key);

// "Could every value as well have the other sign?" Exact test of the sum of values with signs
// flipped; counts all up to 42 values, else draws by `key`. Throws as label_test.
PermutationTest sign_test(std::span<const double> values, std::uint64_t key);

}  // namespace tpudist
