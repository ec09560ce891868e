#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/means.hpp"

namespace tpudist {

// The facts by which one trained member is judged. `scores` [graphs] is the primary metric on each
// graph; NaN if the member was trained on the graph or did not score it.
struct MemberRecord {
  bool finite = true;     // parameters, losses and scores were finite throughout
  double first_loss = 0;  // mean training loss of its first steps, NaN if unknown
  double last_loss = 0;   // mean training loss of its last steps
  std::vector<double> scores;
  // False: the member gives all rows of each graph one score, and a member that learned does not.
  bool ranks = true;
  double loss_margin = kNone;  // a smaller rise of the loss is noise; NaN if unknown

  // Whether the loss rose by at least `loss_margin`. Unknown margin: also if both losses are equal.
  bool loss_did_not_fall() const;
};

struct Rejection {
  int member = 0;
  std::string reason;  // one sentence with the numbers
};

// The rule that leaves members out of an ensemble. It is fixed before anybody looks at scores, and
// should hardly ever apply:
// 1. not finite: a loss, parameter or score was NaN or infinite;
// 2. not trained: the training loss ended above its initial value by at least its noise (Student's
//    t at 1 %, as steps differ), or the member gives all rows of each graph one score and a member
//    that learned does not;
// 3. far below its peers: the mean score is lower than the mean of the other members that were
//    scored on the SAME graphs, by more than 0.10 (of Kendall tau or the tile score) and by more
//    than four standard deviations between members, or more if few members make that deviation
//    uncertain.
//
// Members of different folds are never compared: one fold's graphs may simply be harder.
//
// The standard deviation of rule 3 is pooled over all sets of members that were scored on the same
// graphs. Each set is centred on its own mean; a set of n has n - 1 degrees of freedom. The judged
// member is excluded, so that it cannot hide itself. For a healthy member distance / (deviation
// sqrt(n / (n - 1))) has Student's t distribution with the pooled degrees of freedom minus one. The
// quantile at 1 - 0.01 / members replaces the four if it is larger: 8.1 for five members on the
// same graphs, 4.6 for five folds of three. With only three members the rule rejects hardly any.
//
// The rule judges at most a third of the members, rounded up, from the lowest on, each without
// those judged before. It leaves out all up to the last one that is far enough below, so that
// several failed members do not hide each other (Rosner, "Percentage points for a generalized ESD
// many-outlier procedure", Technometrics 1983).
//
// Returns the members to leave out, in their order.
std::vector<Rejection> rejected_members(std::span<const MemberRecord> members);

}  // namespace tpudist
