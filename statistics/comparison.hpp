#pragma once

#include <optional>
#include <span>
#include <vector>

#include "statistics/permutation.hpp"
#include "statistics/power.hpp"
#include "statistics/score_intervals.hpp"

namespace tpudist {

// Two systems on the same graphs, A minus B. Every answer is nothing where there is not enough to
// give it. A run is a complete training (RunScores): what is correlated within one does no harm.
struct Comparison {
  double a = 0, b = 0, difference = 0;  // means over runs and graphs
  int runs_a = 0, runs_b = 0, families = 0, graphs = 0;
  bool out_of_fold = false;

  // "Would other runs of A and of B differ on these graphs?" Needs two runs of both.
  struct TheseGraphs {
    Interval interval;  // Welch's t over runs
    double p = 1;       // of that t
    // Of exchanged labels of runs; nothing where spreads or numbers differ too much (label_test).
    std::optional<PermutationTest> labels;
  };
  std::optional<TheseGraphs> these_graphs;

  // "Would they differ on other families?" Needs two families.
  struct OtherFamilies {
    FamilyInterval interval;
    double p = 1;  // of Student's t
    // Of these trained models: signs of families' sums of differences flipped.
    PermutationTest signs;
    ShakeUp shake_up;  // with other runs too, where both sides have two
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
// The second answer alone.
std::optional<Comparison::OtherFamilies> compare_on_other_families(const RunScores& a,
                                                                   const RunScores& b);

// "How many runs and families would show a true difference of `difference`?", by what A and B
// differ by now. Throws as compare, and Error where `difference` is not above 0.
struct DifferencePlan {
  double difference = 0;
  std::optional<NeededRange> runs;      // of each side, on these graphs; needs two runs of both
  std::optional<NeededRange> families;  // like these, with the runs at hand; needs two families
  // The same with ten times as many runs of each; needs two runs of both.
  std::optional<NeededRange> families_with_more_runs;
};
DifferencePlan plan_difference(const RunScores& a, const RunScores& b, double difference);

// All pairs of several systems at once, on these graphs, other runs: the chance that any of equal
// systems is called different is kSignificance, however many there are.
struct PairDifference {
  int a = 0, b = 0;   // indices of systems, a < b
  Interval interval;  // A minus B; all pairs hold together with 95 %
  double p = 1;       // adjusted for all pairs
};
struct AllPairs {
  // Of two systems Welch's t, as in `compare`. By one spread for all systems and Tukey's studentised range (Tukey 1953, Kramer 1956), where
  // each has three runs and Bartlett's test sees nothing against it (p above 0.5); else Welch's t by
  // Holm (1979), with intervals by Bonferroni.
  bool one_spread = true;
  std::vector<PairDifference> pairs;
  // Each system's mean over runs, drawn towards the mean of all by empirical Bayes (Efron and
  // Morris, JASA 1973): what other runs of it would reach on average, if systems like these are
  // drawn from one normal distribution. Empty for two systems: their spread is unknown.
  std::vector<double> shrunk;
};
// `run_means` [systems][runs]: at least 2 systems of at least 2 runs each; Error otherwise.
AllPairs all_pairs(std::span<const std::vector<double>> run_means);

}  // namespace tpudist
