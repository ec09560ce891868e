#include "statistics/ranking/member_spread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/means.hpp"
#include "statistics/ranking/combination.hpp"

namespace tpudist {
namespace {

// 1 + the number of lower scores, for each.
std::vector<std::int64_t> ranks_of(const std::vector<double>& scores) {
  std::vector<double> sorted = scores;
  std::ranges::sort(sorted);
  std::vector<std::int64_t> ranks;
  for (const double score : scores)
    ranks.push_back(std::ranges::lower_bound(sorted, score) - sorted.begin() + 1);
  return ranks;
}

double sample_deviation(const std::vector<std::vector<double>>& members, std::size_t k) {
  const auto count = static_cast<double>(members.size());
  if (members.size() < 2) return kNone;
  double mean = 0, squares = 0;
  for (const auto& scores : members) mean += scores[k] / count;
  for (const auto& scores : members) squares += (scores[k] - mean) * (scores[k] - mean);
  return std::sqrt(squares / (count - 1));
}

}  // namespace

std::vector<MemberSpread> member_spreads(std::span<const std::vector<double>> members) {
  if (members.empty()) throw Error(ErrorKind::failed, "no member whose spread could be told");
  const std::size_t configs = members.front().size();
  std::vector<MemberSpread> spreads(configs);
  std::vector<std::vector<double>> z_scores;
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (members[m].size() != configs) {
      throw Error(ErrorKind::failed,
                  fmt::format("member {} scores {} configurations, member 0 scores {}", m,
                              members[m].size(), configs));
    }
    z_scores.push_back(normalised(members[m], {CombinationRule::z_score}));
    const std::vector<std::int64_t> ranks = ranks_of(members[m]);
    for (std::size_t k = 0; k < configs; ++k) {
      spreads[k].best_rank = m == 0 ? ranks[k] : std::min(spreads[k].best_rank, ranks[k]);
      spreads[k].worst_rank = std::max(spreads[k].worst_rank, ranks[k]);
    }
  }
  for (std::size_t k = 0; k < configs; ++k) spreads[k].deviation = sample_deviation(z_scores, k);
  return spreads;
}

}  // namespace tpudist
