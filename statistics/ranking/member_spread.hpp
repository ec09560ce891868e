#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpudist {

// How far the members of an ensemble agree on one of c configurations.
struct MemberSpread {
  // Sample standard deviation (divisor M - 1) over members of their z-scores, without unit. A
  // z-score is (score - mean) / standard deviation over the member's c scores. NaN for a single
  // member.
  double deviation = 0;
  // The lowest and the highest rank that a member gives it. A rank is 1 + the number of
  // configurations with a lower score, so equal scores have equal ranks.
  std::int64_t best_rank = 1, worst_rank = 1;
};

// `members` [M][c] are scores, lower is faster. A member whose scores are all equal has z-scores of
// 0. Returns [c]. Throws DataError where a score is not finite, and Error where there is no member
// or lengths differ.
std::vector<MemberSpread> member_spreads(std::span<const std::vector<double>> members);

}  // namespace tpudist
