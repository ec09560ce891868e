#pragma once

#include <optional>
#include <span>
#include <vector>

#include "statistics/intervals/permutation.hpp"
#include "statistics/intervals/power.hpp"
#include "statistics/intervals/score_intervals.hpp"

namespace tpudist {

// Compares two systems on the same graphs, A minus B. An answer is missing where the data do not
// suffice for it. A run is a complete training (see RunScoreTable), so correlation within a run
// does no harm.
struct Comparison {
  double a = 0, b = 0, difference = 0;                   // means over runs and graphs
  int runs_a = 0, runs_b = 0, families = 0, graphs = 0;  // kin are one family
  double level = kIntervalLevel;                         // of all intervals
  double margin = 0;  // that judge_margin is asked about; 0: none

  double significance() const { return 1 - level; }

  // "Would other runs of A and of B differ on these graphs?" Needs two runs of each.
  struct TheseGraphs {
    Interval interval;  // Welch's t over runs
    double p = 1;       // of Welch's t; NaN where all trainings of both sides score alike
    // Permutation of the run labels; missing where spreads or run counts differ too much
    // (label_test).
    std::optional<PermutationTest> labels;
  };
  std::optional<TheseGraphs> these_graphs;

  // "Would they differ on other families?" Needs two families.
  struct OtherFamilies {
    FamilyInterval interval;
    // By howe_p; NaN, like shake_up, where all families differ alike, or a side has one run. Neither
    // depends on `level`.
    double p = 1;
    // For these trained models: flips the signs of the families' summed differences.
    PermutationTest signs;
    // The difference on the next family of this kind: the mean of families' mean differences, with
    // variance s^2 (1 + 1 / families) between these and what runs add. And what is worth there to
    // be the leader by this mean.
    Interval next;
    ShakeUp shake_up;
  };
  std::optional<OtherFamilies> other_families;
};

// Both must hold the same graphs, families and folds in the same order; their run counts may
// differ.
//
// On other families the variance is V_fam of the differences of run means (family_variance), plus
// the part of the run variance of A and of B that V_fam misses (RunVariance). A system with one run
// adds nothing; the answer then holds for that one model. Throws DataError that names the first
// graph that differs, and as RunScoreTable::check.
Comparison compare(const RunScoreTable& a, const RunScoreTable& b, double level = kIntervalLevel);
// Only `other_families` of compare().
std::optional<Comparison::OtherFamilies> compare_on_other_families(const RunScoreTable& a,
                                                                   const RunScoreTable& b,
                                                                   double level = kIntervalLevel);

// By an interval of A minus B and a margin, as two one-sided tests (Schuirmann 1987): "A better",
// "B better" (by more than the margin), "equivalent" (they differ by less), "A not worse",
// "B not worse" (by less), "undecided".
const char* judge_margin(const Interval& difference, double margin);

// "How many runs and families would show a true difference of `difference`?", estimated from the
// variances of A and B now. Throws as compare, and Error where `difference` is not above 0.
struct DifferencePlan {
  double difference = 0, level = kIntervalLevel;
  std::optional<NeededRange> runs;      // on each side, on these graphs; needs two runs of each
  std::optional<NeededRange> families;  // of this kind, with the current runs; needs two families
  // The same with ten times as many runs of each system; needs two runs of each.
  std::optional<NeededRange> families_with_more_runs;
  // Nothing of these is told where trainings score alike, or families differ alike: spreads of 0
  // are not known.
  bool alike_runs = false, alike_families = false;
};
DifferencePlan plan_difference(const RunScoreTable& a, const RunScoreTable& b, double difference,
                               double level = kIntervalLevel);

// Compares all pairs of several systems on these graphs over other runs. If all systems are equal,
// the chance that any pair is called different is kSignificance, for any number of systems.
struct PairDifference {
  int a = 0, b = 0;   // indices of systems, a < b
  Interval interval;  // A minus B; simultaneous 95 % intervals for all pairs
  double p = 1;       // adjusted for all pairs; NaN where all runs of both score alike
};
struct AllPairs {
  // Two systems: Welch's t, as in `compare`. More systems: with one common spread, Tukey's
  // studentised range (Tukey 1953, Kramer 1956), if each has three runs, some spread is above 0 and
  // Bartlett's test finds no difference of spreads (p above 0.5). Otherwise Welch's t with Holm's
  // correction (1979) and Bonferroni intervals. True: one common spread was used.
  bool one_spread = true;
  std::vector<PairDifference> pairs;
  // "Welch's t test", "Tukey's test", "Welch's t tests with Holm's correction"
  const char* test_name() const;
  // Each system's mean over runs, shrunk towards the mean of all by empirical Bayes (Efron and
  // Morris, JASA 1973). It estimates what other runs of the system would reach on average, if the
  // systems are drawn from one normal distribution. Empty for two systems, where the spread
  // between systems is unknown, and where all runs of each system score alike.
  std::vector<double> shrunk;
};
// `run_means` [systems][runs]: at least 2 systems with at least 2 runs each; Error otherwise.
// `reach` is of differences.
AllPairs all_pairs(std::span<const std::vector<double>> run_means, Reach reach = {});

// "How large must a difference be to be found?" The shift of one of `systems` systems, in standard
// deviations between runs, at which all_pairs calls it different from another one with probability
// kPower. The others are equal, the spreads too, and each has `runs` normal runs. By simulation of
// all_pairs with a fixed key, to about 5 %: 100 draws or more. Infinite where it is above 1,000.
// Needs two systems of two runs; Error otherwise.
double detectable_shift(int systems, int runs);

}  // namespace tpudist
