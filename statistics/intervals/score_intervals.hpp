#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "statistics/intervals/interval.hpp"
#include "statistics/intervals/run_score_table.hpp"

namespace tpudist {

// "Other families, if trained again": an interval for the mean on new families of the same kind
// and, with several runs, after new runs.
struct FamilyInterval {
  Interval interval;
  int families = 0, graphs = 0, collections = 0;
  int runs = 0;             // fewest runs of any collection; 1: the interval holds for this model
                            // only
  VarianceEstimate family;  // V_fam
  double run_variance = 0;  // added by training again
  std::set<std::string> notes;  // how kin count (FamilyClusters::note)
};

// "These graphs, if trained again": mean +- t(R - 1) s / sqrt(R) over complete runs. Nothing for
// one run. Throws as RunScoreTable::check.
std::optional<Interval> run_interval(const RunScoreTable& scores, double level = kIntervalLevel);

// "Other families, if trained again" for the mean over collections, equally weighted, of their
// means over graphs. V = V_fam + the part of the run variance that V_fam misses, at least 0, by
// Howe's rule (with_runs). Families are clustered across collections (family_variance), kin as one
// (family_clusters); runs are independent between collections (run_variance). With one run V =
// V_fam. Nothing if all graphs of a collection are of one family. Throws as RunScoreTable::check.
std::optional<FamilyInterval> family_interval(std::span<const RunScoreTable> collections,
                                              double level = kIntervalLevel);

// Intervals as printed, each one line without a newline.

// "0.7219 (0.6748 to 0.7691, t(2))"; for an unknown spread "0.7219 (no interval: all scores are
// alike, ...)".
std::string interval_text(const Interval& interval);

// "other families, if trained again  0.7219 (0.5463 to 0.8976, t(2.51)); 7 graphs of 4 families, 3
// runs"; for one run "other families, this model only".
std::string family_line(const FamilyInterval& found);

// "these graphs, if trained again    0.7219 (0.6748 to 0.7691, t(2)); " and `source`: "3 runs".
std::string run_line(const Interval& interval, const std::string& source);

// For a single training:
// "other members of this training    0.7219 (0.6748 to 0.7691, t(4)); " and `source`.
std::string member_line(const Interval& interval, const std::string& source);

// Says what the interval of a single training does not cover, and how to get one that does.
std::string one_training_line();
std::string more_trainings_text();  // how to get one, in one clause

// "4 families without a failure leave a failure rate of up to 53 % possible (95 %)": no interval
// covers unseen failures. If 5 % of trainings of SD 0.01 collapse by 0.3, intervals of 3 hold the
// mean in 73 %.
std::string rare_line(int number, std::string_view of, std::string_view event);

// Complete lines, each after two spaces: family_line, rare_line and notes, or why there is no
// interval.
std::string family_text(const std::optional<FamilyInterval>& found);

// Why there is no interval: "scores of all trainings are alike, so their spread is not known".
std::string alike_line(const std::string& what);

// Says why an interval on these graphs is missing.
std::string no_run_line(const std::string& reason);

}  // namespace tpudist
