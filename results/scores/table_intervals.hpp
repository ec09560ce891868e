#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "results/scores/judgement.hpp"
#include "statistics/intervals/score_intervals.hpp"

namespace tpudist {

// {"value", "error", "degrees", "low", "high"}; null without an interval. "low" and "high" are null
// where all values are alike (Interval::is_known).
nlohmann::json interval_json(const std::optional<Interval>& interval);

// The same with "families", "graphs", "collections", "runs", "family_variance", "run_variance" and
// "notes".
nlohmann::json family_interval_json(const std::optional<FamilyInterval>& found);

// "1 of 6 trainings collapsed, so the rate is at most 58 % (95 %); without collapses the mean is
// 0.7512": far below the median. rare_line where none did, or two trainings cannot show it.
std::string collapse_line(const RunScoreTable& scores);

// Intervals of the score of members together, TableJudgement::kept. If a selection is used it is
// the nested score, since the other one is biased; the spread between members is that of the
// selected weights. Graphs with an undefined metric are ignored.
struct TableIntervals {
  // "These graphs": the jackknife over trainings, each left out with all its members. With one
  // training it is over its members, which says nothing about other trainings. Nothing for fewer
  // than two columns.
  std::optional<Interval> these_graphs;
  int trainings = 0;  // combined trainings
  int columns = 0;    // combined columns
  // "Other families, this model only"; nothing for fewer than two families.
  std::optional<FamilyInterval> families;
};
TableIntervals table_intervals(const TableJudgement& table);

// The ensemble's scores of the graphs of `table` that have one, as one run.
RunScoreTable ensemble_scores(const TableJudgement& table);

// The final score: the mean over collections of TableJudgement::kept, and its intervals. A table is one
// collection, or those of its parts. Members of a table rank all of its parts and leave them together;
// members of tables are independent. Families are clustered across collections.
struct FinalIntervals {
  double nested = 0;  // as the score, of selections that were made without a graph's family
  double score = 0;   // NaN if a collection has none; then there is no interval
  std::optional<Interval> these_graphs;  // around the nested scores, as of TableIntervals
  std::optional<FamilyInterval> families;
  bool one_training = false, selected = false, several = false;  // in any table; several columns
};
FinalIntervals final_intervals(std::span<const TableJudgement> tables);

// Complete lines; empty if a collection has no score.
std::string final_interval_text(std::span<const TableJudgement> tables);

// Complete lines; empty if no graph has a score.
std::string table_interval_text(const TableJudgement& table);
// {"these_graphs": ..., "other_families": ...} as interval_json and family_interval_json; the
// former has also "between", "trainings" or "members of one training", and their number.
nlohmann::json table_interval_json(const TableJudgement& table);

}  // namespace tpudist
