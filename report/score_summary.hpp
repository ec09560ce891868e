#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/charts/interval_chart.hpp"
#include "results/score_matrix.hpp"

namespace tpudist {

// The mean of a matrix with how sure it is.
struct ScoreSummary {
  double mean = 0;       // over rows and graphs
  double deviation = 0;  // between the means of rows; NaN of a single one
  int rows = 0, graphs = 0, families = 0;
  std::optional<ChartInterval> these_graphs, other_families;  // 95 %
  std::vector<std::string> notes;  // why an interval is not there, and what it cannot see
};

// Of a matrix with at least one row.
ScoreSummary summarise(const ScoreMatrix& matrix);

// Of each graph: the mean over rows, and its interval where rows are at least two.
struct GraphSummary {
  double mean = 0;
  std::optional<ChartInterval> interval;
};
std::vector<GraphSummary> summarise_graphs(const ScoreMatrix& matrix);

}  // namespace tpudist
