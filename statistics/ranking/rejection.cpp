#include "statistics/ranking/rejection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

#include "statistics/intervals/distributions.hpp"

namespace tpudist {
namespace {

constexpr double kMargin = 0.10;  // of the metric (Kendall tau or tile score)
constexpr double kDeviations = 4;
constexpr double kLevel = 0.01;  // the chance of rejecting a member of an all-healthy ensemble
constexpr int kLeastPeers = 3;   // rule 3 needs as many on the same graphs, with the judged one

// Members that were scored on the same graphs, without those already rejected.
struct Peers {
  std::int64_t graphs = 0;
  std::vector<int> members;
  std::vector<double> scores;  // mean score of each

  double count() const { return static_cast<double>(scores.size()); }
  double squares() const { return squares_around(scores, mean(scores)); }
  double mean_of_others(std::size_t i) const {
    return (mean(scores) * count() - scores[i]) / (count() - 1);
  }
  void remove(std::size_t i) {
    members.erase(members.begin() + static_cast<std::ptrdiff_t>(i));
    scores.erase(scores.begin() + static_cast<std::ptrdiff_t>(i));
  }
};

// The sets of members that were scored on the same graphs. Members without a score, or already
// rejected, are in no set.
std::vector<Peers> peers_of(std::span<const MemberRecord> members,
                            const std::map<int, std::string>& left_out) {
  std::map<std::vector<bool>, Peers> peers;  // by the graphs that they were scored on
  for (std::size_t m = 0; m < members.size(); ++m) {
    std::vector<bool> scored;
    for (const double score : members[m].scores) scored.push_back(!std::isnan(score));
    const auto graphs = std::ranges::count(scored, true);
    if (graphs == 0 || left_out.contains(static_cast<int>(m))) continue;
    Peers& own = peers[scored];
    own.graphs = graphs;
    own.members.push_back(static_cast<int>(m));
    own.scores.push_back(mean_of_known(members[m].scores));
  }
  std::vector<Peers> sets;
  for (auto& [graphs, own] : peers) sets.push_back(std::move(own));
  return sets;
}

// A member compared with the others on the same graphs.
struct Comparison {
  int member = -1;
  std::size_t set = 0, place = 0;  // of Peers
  double score = 0, others = 0;    // mean scores of the member, of the others
  double deviation = 0;            // between members, without this one
  double studentised = 0;          // Student's t of others - score
  double allowed = 0;              // of others - score

  double below() const { return others - score; }
};

// The member that lies farthest below its peers; -1 if none can be judged.
Comparison lowest_member(const std::vector<Peers>& sets) {
  double squares = 0, degrees = -1, judged = 0;  // judging a member costs one degree of freedom
  for (const Peers& set : sets) {
    squares += set.squares();
    degrees += set.count() - 1;
    if (std::ssize(set.members) >= kLeastPeers) judged += set.count();
  }
  Comparison lowest;
  if (judged == 0) return lowest;
  const double quantile = t_quantile(1 - kLevel / judged, degrees);
  for (std::size_t s = 0; s < sets.size(); ++s) {
    const Peers& set = sets[s];
    if (std::ssize(set.members) < kLeastPeers) continue;
    const double n = set.count(), widening = std::sqrt(n / (n - 1));
    for (std::size_t i = 0; i < set.members.size(); ++i) {
      Comparison own{set.members[i], s, i, set.scores[i], set.mean_of_others(i)};
      const double rest = squares - std::pow(own.below() / widening, 2);
      own.deviation = std::sqrt(std::max(rest, 0.0) / degrees);
      own.studentised = own.below() / (own.deviation * widening);
      own.allowed = std::max(kMargin, std::max(kDeviations, quantile * widening) * own.deviation);
      if (own.below() > 0 && (lowest.member < 0 || own.studentised > lowest.studentised))
        lowest = own;
    }
  }
  return lowest;
}

}  // namespace

bool MemberRecord::loss_did_not_fall() const {
  return last_loss - first_loss >= (std::isnan(loss_margin) ? 0 : loss_margin);
}

std::vector<Rejection> rejected_members(std::span<const MemberRecord> members) {
  std::map<int, std::string> reasons;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const MemberRecord& member = members[m];
    if (!member.finite) {
      reasons[static_cast<int>(m)] = "its numbers are not finite";
    } else if (member.loss_did_not_fall()) {
      reasons[static_cast<int>(m)] = fmt::format(
          "its training loss did not fall: {:.4g} at the start, {:.4g} at the end{}",
          member.first_loss, member.last_loss,
          std::isnan(member.loss_margin)
              ? ""
              : fmt::format("; a rise below {:.2g} would be noise", member.loss_margin));
    } else if (!member.ranks) {
      reasons[static_cast<int>(m)] =
          "it gives all rows of each graph one score, and a member that learned does not";
    }
  }
  std::vector<Peers> sets = peers_of(members, reasons);
  std::size_t count = 0;
  for (const Peers& set : sets) count += set.members.size();
  std::map<int, std::string> far, doubtful;  // members far below; those left out only if a
                                             // later one is far below
  for (std::size_t step = 0; step < (count + 2) / 3; ++step) {
    const Comparison low = lowest_member(sets);
    if (low.member < 0) break;
    Peers& set = sets[low.set];
    doubtful[low.member] = fmt::format(
        "its mean score {:.4f} lies {:.4f} below {:.4f}, that of the {} other members scored on "
        "the same {} graphs; up to {:.4f} is allowed (members' standard deviation {:.4f})",
        low.score, low.below(), low.others, set.members.size() - 1, set.graphs, low.allowed,
        low.deviation);
    if (low.below() > low.allowed) {
      far.merge(doubtful);
      doubtful.clear();
    }
    set.remove(low.place);
  }
  reasons.merge(far);
  std::vector<Rejection> rejected;
  for (auto& [member, reason] : reasons) rejected.push_back({member, std::move(reason)});
  return rejected;
}

}  // namespace tpudist
