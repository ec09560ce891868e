#pragma once

#include <optional>
#include <span>
#include <vector>

#include "statistics/intervals/power.hpp"
#include "statistics/intervals/score_intervals.hpp"

namespace tpudist {

// Compares two systems on the same graphs, A minus B. An answer is missing if the data do not
// suffice. A run is a complete training (see RunScoreTable), so correlation within a run does no
// harm.
struct Comparison {
  double a = 0, b = 0, difference = 0;  // means over runs and graphs
  int families = 0, graphs = 0;         // kin are one family
  double level = kIntervalLevel;        // of all intervals
  double margin = 0;                    // for judge_margin; 0: none

  double significance() const { return 1 - level; }

  // "Would A and B differ on these graphs if trained again?" Needs two runs of each.
  struct TheseGraphs {
    Interval interval;  // Welch's t over runs
    double p = 1;       // of Welch's t; NaN if all trainings of each side score alike
  };
  std::optional<TheseGraphs> these_graphs;

  // "Would A and B differ on other families?" Needs two families.
  struct OtherFamilies {
    FamilyInterval interval;
    // By howe_p. `p` and `shake_up` are NaN if all families differ alike or a side has one run, and
    // do not depend on `level`.
    double p = 1;
    // The difference on one more family of this kind: the mean of the families' mean differences,
    // with their variance s^2 times (1 + 1 / families), plus the variance of runs. `shake_up` says
    // what the lead by this mean is worth there.
    Interval next;
    ShakeUp shake_up;
  };
  std::optional<OtherFamilies> other_families;
};

// `a` and `b` must have the same graphs, families and folds in the same order; run counts may
// differ.
//
// On other families the variance is V_fam of the differences of run means (family_variance), plus
// the part of the run variance of A and of B that V_fam misses (RunVariance). A system with one run
// adds nothing; the answer then holds for that one model. Throws as RunScoreTable::check, and
// DataError that names the first graph that differs.
Comparison compare(const RunScoreTable& a, const RunScoreTable& b, double level = kIntervalLevel);
// Only `other_families` of compare().
std::optional<Comparison::OtherFamilies> compare_on_other_families(const RunScoreTable& a,
                                                                   const RunScoreTable& b,
                                                                   double level = kIntervalLevel);

// Judges an interval of A minus B against a margin by two one-sided tests (Schuirmann 1987): "A
// better", "B better" (by at least the margin), "equivalent" (a smaller difference), "A not worse",
// "B not worse" (by the margin), "undecided".
const char* judge_margin(const Interval& difference, double margin);

// "How many runs and families would show a true difference of `difference`?", estimated from the
// current variances of A and B. Throws as compare, and Error if `difference` is not above 0.
struct DifferencePlan {
  double difference = 0, level = kIntervalLevel;
  std::optional<NeededRange> runs;      // on each side, on these graphs; needs two runs of each
  std::optional<NeededRange> families;  // of this kind, with the current runs; needs two families
  // `families` with ten times as many runs of each system; needs two runs of each.
  std::optional<NeededRange> families_with_more_runs;
  // True: the numbers above are missing, because all trainings score alike, or all families differ
  // alike, and the spread is unknown.
  bool alike_runs = false, alike_families = false;
};
DifferencePlan plan_difference(const RunScoreTable& a, const RunScoreTable& b, double difference,
                               double level = kIntervalLevel);

// Compares all pairs of several systems on these graphs, if trained again. If all systems are
// equal, the chance that any pair is called different is kSignificance, for any number of systems.
struct AllPairs {
  struct Pair {
    int a = 0, b = 0;   // indices of systems, a < b
    Interval interval;  // A minus B; simultaneous 95 % intervals for all pairs
    double p = 1;       // adjusted for all pairs; NaN if all runs of each score alike
  };
  // Two systems: Welch's t, as in `compare`. More systems: with one common spread, Tukey's
  // studentised range (Tukey 1953, Kramer 1956), if each has three runs, some spread is above 0 and
  // Bartlett's test finds no difference of spreads (p above 0.5). Otherwise Welch's t with Holm's
  // correction (1979) and Bonferroni intervals. True: with one spread.
  bool one_spread = true;
  std::vector<Pair> pairs;
  // "Welch's t test", "Tukey's test", "Welch's t tests with Holm's correction"
  const char* test_name() const;
  // Each system's mean over runs, shrunk towards the mean of all by empirical Bayes (Efron and
  // Morris, JASA 1973). The value estimates the system's mean if trained again, if the systems are
  // drawn from one normal distribution. Empty for two systems, whose spread between systems is
  // unknown, and if all runs of each system score alike.
  std::vector<double> shrunk;
};
// `run_means` [systems][runs]: at least 2 systems with at least 2 runs each; Error otherwise.
// `reach`: of differences.
AllPairs all_pairs(std::span<const std::vector<double>> run_means, Reach reach = {});

// "How large must a difference be to be found?" The shift of one of `systems` systems, in standard
// deviations between runs, at which all_pairs calls that system different from another one with
// probability kPower. The other systems and all spreads are equal; each system has `runs` normal
// runs. Simulates all_pairs with a fixed key and at least 100 draws, to about 5 %. Infinite if
// above 1,000. Needs two systems of two runs; Error otherwise.
double detectable_shift(int systems, int runs);

}  // namespace tpudist
