#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpudist {

// How far the members of an ensemble agree on one of c configurations.
struct MemberSpread {
  // Sample standard deviation (divisor M - 1) over members of their z-scores, each member's scores
  // minus their mean, divided by their standard deviation over the c configurations: a number
  // without unit. NaN of a single member.
  double deviation = 0;
  // The lowest and the highest rank that a member gives it: 1 + the number of configurations with a
  // lower score, so that equal scores have equal ranks.
  std::int64_t best_rank = 1, worst_rank = 1;
};

// `members` [M][c] are scores, lower is faster; a member that gives all the same score has z-scores
// of 0. [c]. Throws DataError where a score is not finite, and Error where there is no member or
// lengths differ.
std::vector<MemberSpread> member_spreads(std::span<const std::vector<double>> members);

}  // namespace tpudist
