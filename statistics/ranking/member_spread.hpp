#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpudist {

// The agreement of an ensemble's members on one of c configurations.
struct MemberSpread {
  // Sample standard deviation (divisor M - 1) over members of their z-scores, without unit. A
  // z-score is (score - mean) / standard deviation over the member's c scores. NaN for a single
  // member.
  double deviation = 0;
  // The lowest and the highest rank that a member gives the configuration. A rank is 1 + the number
  // of configurations with a lower score, so equal scores have equal ranks.
  std::int64_t best_rank = 1, worst_rank = 1;
};

// `members` [M][c] are scores, lower is faster. A member with equal scores has z-scores of 0.
// Returns [c]. Throws DataError if a score is not finite, and Error if there is no member or if
// lengths differ.
std::vector<MemberSpread> member_spreads(std::span<const std::vector<double>> members);

}  // namespace tpudist
