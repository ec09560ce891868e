#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpudist {

// Values of two systems whose labels can be exchanged: runs of one fold, or a family's two sums.
// The group adds weight x (mean of a - mean of b) to the difference that is tested.
struct LabelGroup {
  std::vector<double> a, b;  // neither empty
  double weight = 1;
};

// The p above which nothing is called a difference.
inline constexpr double kSignificance = 0.05;

// How probable so large a difference is when labels say nothing.
struct PermutationTest {
  double difference = 0;
  double p = 1;           // two-sided: the share of labellings with at least this difference
  double labellings = 1;  // how many there are
  // The least p that any values could have: two of the labellings where mirroring all groups gives
  // one, else one. Above kSignificance the test cannot say anything.
  double smallest_p = 1;
  bool exact = true;  // all labellings counted; else p comes from 99,999 drawn ones and the own

  bool can_tell() const { return smallest_p <= kSignificance; }
};

// Fisher's exact permutation test, with labels exchanged within each group. Counts all labellings
// where they split into two parts of at most two million; draws by `key` otherwise. Throws Error
// where a group lacks a side, and DataError where a value is not finite.
PermutationTest permutation_test(std::span<const LabelGroup> groups, std::uint64_t key);

}  // namespace tpudist
