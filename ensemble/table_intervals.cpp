#include "ensemble/table_intervals.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ensemble/interval_json.hpp"
#include "statistics/interval_text.hpp"

namespace tpudist {

RunScores ensemble_scores(const TableJudgement& table) {
  RunScores scores;
  for (const GraphJudgement& graph : table.graphs) {
    if (std::isnan(graph.kept)) continue;
    scores.graphs.push_back(graph.name);
    scores.families.push_back(graph.family);
    scores.scores.push_back({graph.kept});
  }
  return scores;
}

TableIntervals table_intervals(const TableJudgement& table) {
  TableIntervals result;
  const RunScores scores = ensemble_scores(table);
  if (scores.scores.empty()) return result;
  std::vector<double> without;
  for (const double gain : table.gains) {
    if (!std::isnan(gain)) without.push_back(table.kept - gain);
  }
  result.column_count = static_cast<int>(without.size());
  if (without.size() > 1) result.columns = jackknife_interval(table.kept, without);
  result.families = family_interval({&scores, 1});
  return result;
}

std::string final_interval_text(std::span<const TableJudgement> tables) {
  std::vector<RunScores> collections;
  std::vector<VarianceEstimate> members;
  double mean = 0;
  const auto count = static_cast<double>(tables.size());
  for (const TableJudgement& table : tables) {
    if (std::isnan(table.kept)) return {};
    collections.push_back(ensemble_scores(table));
    mean += table.kept / count;
    const auto own = table_intervals(table).columns;
    if (own) members.push_back({std::pow(own->error / count, 2), own->degrees});
  }
  if (tables.empty()) return {};
  std::string text =
      "  " +
      (members.size() == tables.size()
           ? run_line(t_interval(mean, satterthwaite(members)), "jackknife of members")
           : no_run_line("a collection has one member only")) +
      "\n  ";
  const auto families = family_interval(collections);
  if (!families) return text + no_family_line() + "\n";
  return text + family_line(*families) + "\n  " + rare_failure_line(families->families) + "\n";
}

std::string table_interval_text(const TableJudgement& table) {
  if (std::isnan(table.kept)) return {};
  const TableIntervals found = table_intervals(table);
  std::string text = fmt::format("{}, 95 % intervals of the combination\n", table.title);
  text += "  " +
          (found.columns ? run_line(*found.columns,
                                    fmt::format("jackknife of {} members", found.column_count))
                         : no_run_line("one member has no spread; train several members or runs")) +
          "\n  ";
  if (!found.families) return text + no_family_line() + "\n";
  return text + family_line(*found.families) + "\n  " +
         rare_failure_line(found.families->families) + "\n";
}

nlohmann::json table_interval_json(const TableJudgement& table) {
  const TableIntervals found = table_intervals(table);
  return {{"these_graphs", interval_json(found.columns)},
          {"other_families", family_interval_json(found.families)}};
}

}  // namespace tpudist
