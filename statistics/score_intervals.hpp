#pragma once

#include <optional>
#include <span>
#include <string>

#include "statistics/interval.hpp"
#include "statistics/run_score_table.hpp"

namespace tpudist {

// "Other families, other runs": an interval for the mean if families of the same kind, and with
// several runs also the runs, were drawn anew.
struct FamilyInterval {
  Interval interval;
  int families = 0, graphs = 0, collections = 0;
  int runs = 0;             // fewest runs of any collection; 1: the interval holds for this model
                            // only
  VarianceEstimate family;  // V_fam
  double run_variance = 0;  // added by other runs
  bool bootstrap = false;   // V_fam comes from bootstrap_family_variance
};

// "These graphs, other runs": mean +- t(R - 1) s / sqrt(R) over complete runs. Nothing for one run.
// Throws as RunScoreTable::check.
std::optional<Interval> run_interval(const RunScoreTable& scores, double level = kIntervalLevel);

// "Other families, other runs" for the mean over collections, with equal weights, of their means
// over graphs. V = V_fam + the part of the run variance that V_fam misses, at least 0, with
// Satterthwaite's degrees of freedom. Families are clustered across collections (family_variance);
// runs are independent between collections (run_variance). With one run V = V_fam. Nothing where a
// collection has graphs of one family only. Throws as RunScoreTable::check.
std::optional<FamilyInterval> family_interval(std::span<const RunScoreTable> collections,
                                              double level = kIntervalLevel);
// The same for one collection with V_fam from bootstrap_family_variance, drawn with a fixed key;
// throws the same Error.
FamilyInterval bootstrap_family_interval(const RunScoreTable& scores,
                                         double level = kIntervalLevel);

}  // namespace tpudist
