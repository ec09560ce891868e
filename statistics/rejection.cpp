#include "statistics/rejection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

#include "core/means.hpp"

namespace tpudist {
namespace {

// Mean over the graphs that a member was scored on.
double mean_score(const MemberRecord& member) {
  return mean_of_known(member.scores);
}

// Members that were scored on the same graphs, by which graphs those are. Members without a score, or
// with numbers that are not finite, are compared with nobody.
std::map<std::vector<bool>, std::vector<int>> peers_of(std::span<const MemberRecord> members) {
  std::map<std::vector<bool>, std::vector<int>> peers;
  for (std::size_t m = 0; m < members.size(); ++m) {
    std::vector<bool> scored;
    for (const double score : members[m].scores) scored.push_back(!std::isnan(score));
    if (!members[m].finite || std::ranges::find(scored, true) == scored.end()) continue;
    peers[scored].push_back(static_cast<int>(m));
  }
  return peers;
}

std::vector<double> means_of(std::span<const MemberRecord> members, std::span<const int> which) {
  std::vector<double> means;
  for (const int m : which) means.push_back(mean_score(members[static_cast<std::size_t>(m)]));
  return means;
}

}  // namespace

double pooled_deviation(std::span<const MemberRecord> members) {
  constexpr double kOfNormal = 1.4826;  // standard deviation / median absolute value of a normal
  std::vector<double> deviations;
  for (const auto& [graphs, which] : peers_of(members)) {
    if (which.size() < 2) continue;
    const std::vector<double> means = means_of(members, which);
    const double middle = median(means);
    for (const double mean : means) deviations.push_back(std::abs(mean - middle));
  }
  return deviations.empty() ? 0 : kOfNormal * median(deviations);
}

std::vector<Rejection> rejected_members(std::span<const MemberRecord> members,
                                        const RejectionRule& rule) {
  std::map<int, std::string> reasons;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const MemberRecord& member = members[m];
    if (!member.finite) {
      reasons[static_cast<int>(m)] = "its numbers are not finite";
    } else if (member.last_loss >= member.first_loss) {
      reasons[static_cast<int>(m)] =
          fmt::format("its training loss did not fall: {:.4g} at the start, {:.4g} at the end",
                      member.first_loss, member.last_loss);
    }
  }
  const double allowed = std::max(rule.margin, rule.deviations * pooled_deviation(members));
  for (const auto& [graphs, which] : peers_of(members)) {
    if (static_cast<int>(which.size()) < rule.least_peers) continue;
    const std::vector<double> means = means_of(members, which);
    const double middle = median(means);
    for (std::size_t i = 0; i < which.size(); ++i) {
      if (means[i] >= middle - allowed || reasons.contains(which[i])) continue;
      reasons[which[i]] = fmt::format(
          "its mean score {:.4f} lies more than {:.4f} below {:.4f}, the median of the {} members "
          "scored on the same {} graphs",
          means[i], allowed, middle, which.size(), std::ranges::count(graphs, true));
    }
  }
  std::vector<Rejection> rejected;
  for (auto& [member, reason] : reasons) rejected.push_back({member, std::move(reason)});
  return rejected;
}

}  // namespace tpudist
