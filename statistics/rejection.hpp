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
//   3. far below its peers: its mean score lies below the mean of the others that were scored on the
//      SAME graphs by more than `margin`, and by more than `deviations` times the standard deviation
//      between members; by more still where few members make that deviation uncertain.
// Members of different folds are never compared: one fold's graphs may simply be harder.
//
// The standard deviation of rule 3 is pooled over all sets of members that were scored on the same
// graphs, each around its own mean, with n - 1 degrees of freedom for a set of n. The judged member
// has no part in it, so that it cannot hide itself. Then distance / (deviation sqrt(n / (n - 1))) of
// a healthy member has Student's t with one degree less than all of them together, and its quantile
// at 1 - `level` / members replaces `deviations` where it is larger: 8.1 where five members stand
// alone, 4.6 for five folds of three. Three members alone tell too little: hardly any is rejected.
// At most a third of the members, rounded up, is judged, one by one, the lowest first, each without those before
// it, and all are left out up to the last that is far enough: several failed members do not hide
// each other (Rosner, "Percentage points for a generalized ESD many-outlier procedure",
// Technometrics 1983).
struct RejectionRule {
  double margin = 0.10;  // of the metric (Kendall tau or tile score)
  double deviations = 4;
  double level = 0.01;  // the chance that an ensemble of healthy members loses one
  int least_peers = 3;  // members on the same graphs, the judged one included, that rule 3 needs
};

struct Rejection {
  int member = 0;
  std::string reason;  // one sentence with the numbers
};

// Members to leave out, in their order.
std::vector<Rejection> rejected_members(std::span<const MemberRecord> members,
                                        const RejectionRule& rule = {});

}  // namespace tpudist
