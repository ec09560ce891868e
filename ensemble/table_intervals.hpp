#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "ensemble/judgement.hpp"
#include "statistics/score_intervals.hpp"

namespace tpudist {

// How sure the score of one ensemble is, TableJudgement::kept. Graphs on which the metric is
// undefined do not count.
struct TableIntervals {
  // "These graphs, other runs", by the jackknife over the columns that are combined; nothing for
  // fewer than two.
  std::optional<Interval> columns;
  int column_count = 0;
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
// {"these_graphs": ..., "other_families": ...} as interval_json and family_interval_json.
nlohmann::json table_interval_json(const TableJudgement& table);

}  // namespace tpudist
