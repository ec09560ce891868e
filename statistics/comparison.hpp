#pragma once

#include <optional>

#include "statistics/permutation.hpp"
#include "statistics/power.hpp"
#include "statistics/score_intervals.hpp"

namespace tpudist {

// Two systems on the same graphs, A minus B. Every answer is nothing where there is not enough to
// give it.
struct Comparison {
  double a = 0, b = 0, difference = 0;  // means over runs and graphs
  int runs_a = 0, runs_b = 0, families = 0, graphs = 0;
  bool out_of_fold = false;

  // "Do runs of A and of B differ on these graphs?" Both need two runs for the interval, by Welch's
  // t over complete runs; labels of runs are exchanged, within folds where there are any.
  struct TheseGraphs {
    std::optional<Interval> interval;
    PermutationTest test;
    std::optional<int> runs_needed;  // of each, to find the difference that was seen
  } these_graphs;

  // "Would they differ on other families?" Needs two families.
  struct OtherFamilies {
    FamilyInterval interval;
    double p = 1;  // of Student's t
    // Of these trained models: signs of families' sums of differences flipped.
    PermutationTest signs;
    std::optional<int>
        runs_needed;  // nothing: no number of runs finds the difference that was seen
    // The least true difference that these graphs show with any number of runs, found in 80 of 100
    // cases; 0 where graphs do not differ more than runs explain.
    double detectable = 0;
    ShakeUp shake_up;  // of these models
  };
  std::optional<OtherFamilies> other_families;
};

// Both hold the same graphs, families and folds in one order; their numbers of runs may differ.
//
// On other families the variance is V_fam of the differences of run means (family_variance), plus
// what runs of A and of B are missing in it (RunVariance); a system with one run adds nothing, so
// that the answer is of this model. Throws DataError that names the first graph that differs, and
// as RunScores::check.
Comparison compare(const RunScores& a, const RunScores& b);

}  // namespace tpudist
