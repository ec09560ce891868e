#pragma once

#include <optional>
#include <span>
#include <string>

#include "statistics/interval.hpp"
#include "statistics/run_scores.hpp"

namespace tpudist {

// "Other families, other runs": where the mean would lie with families of the same kind drawn anew
// and, with several runs, with other runs.
struct FamilyInterval {
  Interval interval;
  int families = 0, graphs = 0, collections = 0;
  int runs = 0;             // the fewest of a collection; 1: the interval is of this model only
  VarianceEstimate family;  // V_fam
  double run_variance = 0;  // what other runs add to it
  bool bootstrap = false;   // V_fam comes from bootstrap_family_variance
};

// "These graphs, other runs": mean +- t(R - 1) s / sqrt(R) over complete runs. Nothing for one run.
// Throws as RunScores::check.
std::optional<Interval> run_interval(const RunScores& scores, double level = kIntervalLevel);

// "Other families, other runs" of the mean over collections, each counting alike, of their means
// over graphs: V = V_fam + max(0, V_run - V_interaction), with Satterthwaite's degrees of freedom,
// families clustered across collections (family_variance), runs independent between them
// (run_variance). With one run V_fam alone. Nothing where a collection has graphs of one family
// only. Throws as RunScores::check.
std::optional<FamilyInterval> family_interval(std::span<const RunScores> collections,
                                              double level = kIntervalLevel);
// The same of one collection with V_fam by bootstrap_family_variance, drawn by a fixed key; throws
// Error as that.
FamilyInterval bootstrap_family_interval(const RunScores& scores, double level = kIntervalLevel);

}  // namespace tpudist
