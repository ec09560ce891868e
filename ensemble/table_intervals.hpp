#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "ensemble/judgement.hpp"
#include "statistics/score_intervals.hpp"

namespace tpudist {

// How sure the score of members together is, TableJudgement::kept. Where a selection is taken it is
// the nested score, since the other is too good; the spread between members is that of the selected
// weights. Graphs on which the metric is undefined do not count.
struct TableIntervals {
  // "These graphs": the jackknife over trainings, each left out with all its members. With one
  // training that over its members, which says nothing of other trainings. Nothing for fewer than
  // two columns.
  std::optional<Interval> these_graphs;
  int trainings = 0;  // that are taken
  int columns = 0;    // that are taken
  // "Other families, this model only"; nothing for fewer than two families.
  std::optional<FamilyInterval> families;
};
TableIntervals table_intervals(const TableJudgement& table);

// One ensemble's scores of the graphs of `table` that have one, as one run.
RunScores ensemble_scores(const TableJudgement& table);

// How sure the final score is, the mean over collections of TableJudgement::kept, a table each:
// members of collections are independent, families are clustered across collections. Lines, each
// with its end; none where a collection has no score.
std::string final_interval_text(std::span<const TableJudgement> tables);

// Lines, each with its end; none where no graph has a score.
std::string table_interval_text(const TableJudgement& table);
// {"these_graphs": ..., "other_families": ...} as interval_json and family_interval_json; the former
// with "between", "trainings" or "members of one training", and how many.
nlohmann::json table_interval_json(const TableJudgement& table);

}  // namespace tpudist
