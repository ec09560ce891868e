#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "results/scores/judgement.hpp"
#include "statistics/intervals/score_intervals.hpp"

namespace tpudist {

// {"value", "error", "degrees", "low", "high"}; null without an interval. "low" and "high" are null
// if all values are alike (Interval::is_known).
nlohmann::json interval_json(const std::optional<Interval>& interval);

// The same with "families", "graphs", "collections", "runs", "family_variance", "run_variance" and
// "notes".
nlohmann::json family_interval_json(const std::optional<FamilyInterval>& found);

// "1 of 6 trainings collapsed, so the rate is at most 58 % (95 %); without collapses the mean is
// 0.7512". Collapsed: far below the median. rare_line if none did, or with two trainings or fewer.
std::string collapse_line(const RunScoreTable& scores);

// Intervals of the score of members together, TableJudgement::kept. Graphs with an undefined metric
// are ignored.
struct TableIntervals {
  // "These graphs": the jackknife over trainings, each left out with all its members. With one
  // training, the jackknife over its members says nothing about other trainings. Nothing for fewer
  // than two columns.
  std::optional<Interval> these_graphs = {};
  int trainings = 0;  // combined trainings; of several tables the fewest
  int columns = 0;    // combined columns; of several tables the most
  // "Other families, this model only"; nothing for fewer than two families.
  std::optional<FamilyInterval> families = {};
  double score = 0;  // NaN if a collection has none; then there is no interval
};
TableIntervals table_intervals(const TableJudgement& table);

// The final score: the mean over collections of TableJudgement::kept, and its intervals. A table is
// one collection, or those of its parts. Leaving a member out removes it from all parts of its
// table. Members of different tables are independent. Families are clustered across collections.
TableIntervals final_intervals(std::span<const TableJudgement> tables);

// Complete lines; empty if a collection has no score.
std::string final_interval_text(std::span<const TableJudgement> tables);

// Complete lines, with the slowdowns of the combination at kTops; empty if no graph has a score.
std::string table_interval_text(const TableJudgement& table);
// {"these_graphs": interval_json, "other_families": family_interval_json, "slowdown": slowdown_json}.
// "these_graphs" also has "between" ("trainings", "members of one training"), "trainings" and
// "members": their numbers.
nlohmann::json table_interval_json(const TableJudgement& table);

}  // namespace tpudist
