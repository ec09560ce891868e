#pragma once

#include <span>
#include <string>
#include <vector>

namespace tpudist {

// What is known of one trained member when it is to be judged. `scores` [graphs] is the primary metric
// on each graph, NaN where the member has none (a graph that it was trained on, or did not score).
struct MemberRecord {
  bool finite = true;     // parameters, losses and scores were finite throughout
  double first_loss = 0;  // mean training loss of its first steps, NaN where unknown
  double last_loss = 0;   // of its last steps
  std::vector<double> scores;
};

// The stated rule by which members are left out of an ensemble. It is fixed before anybody looks at
// scores, and by intention hardly ever fires:
//   1. not finite: a loss, parameter or score was NaN or infinite;
//   2. not trained: its training loss did not fall below where it started;
//   3. far below its peers: its mean score lies under the median of the members that were scored on the
//      SAME graphs by more than max(margin, deviations x pooled standard deviation of those members).
// Members of different folds are never compared: one fold's graphs may simply be harder. A rule by the
// median absolute deviation would throw out a healthy member in 15 to 46 % of ensembles.
struct RejectionRule {
  double margin = 0.10;  // of the metric (Kendall tau or tile score)
  double deviations = 4;
  int least_peers = 3;  // members on the same graphs, the judged one included, that rule 3 needs
};

struct Rejection {
  int member = 0;
  std::string reason;  // one sentence with the numbers
};

// Members to leave out, in their order. `pooled_deviation` is the standard deviation of the mean score
// between runs, pooled over the sets of members on equal graphs; 0 where unknown (pooled_deviation()).
std::vector<Rejection> rejected_members(std::span<const MemberRecord> members,
                                        const RejectionRule& rule = {});

// Standard deviation of the members' mean scores around the median of those on the same graphs, pooled
// over all such sets, from their median absolute values (times 1.4826), so that a failed member does
// not hide itself. 0 where no set has two members.
double pooled_deviation(std::span<const MemberRecord> members);

}  // namespace tpudist
