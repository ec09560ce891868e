#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/charts/interval_chart.hpp"
#include "report/variant_rankings.hpp"
#include "results/score_matrix.hpp"

namespace tpudist {

// A mean over graphs with how sure it is.
struct ScoreSummary {
  double mean = 0;       // over rows and graphs
  double deviation = 0;  // between the means of rows; NaN of a single one
  int rows = 0, graphs = 0, families = 0;
  std::optional<ChartInterval> these_graphs, other_families;  // 95 %
  std::string note;  // why an interval is not there; empty where both are
};

// Of a matrix with at least one row: run_interval and family_interval of its rows.
ScoreSummary summarise(const ScoreMatrix& matrix);
// Of all members of a variant together on validation graphs: the jackknife over members, and other families
// with these members alone. Nothing where no graph was ranked by two members.
std::optional<ScoreSummary> summarise(const VariantRankings& rankings);

// Of each graph: the mean over rows, and its 95 % interval where rows are at least two.
struct GraphSummary {
  double mean = 0;
  std::optional<ChartInterval> interval;
};
std::vector<GraphSummary> summarise_graphs(const ScoreMatrix& matrix);

}  // namespace tpudist
