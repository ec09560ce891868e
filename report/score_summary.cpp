#include "report/score_summary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tpudist {
namespace {

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  if (values.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace

ScoreSummary summarise(const ScoreMatrix& matrix) {
  const std::vector<double> means = matrix.row_means();
  const std::vector<int> families = matrix.family_numbers();
  ScoreSummary summary;
  summary.mean = mean_of(means);
  summary.deviation = deviation_of(means);
  summary.rows = static_cast<int>(matrix.rows.size());
  summary.graphs = static_cast<int>(matrix.graphs.size());
  summary.families = 1 + *std::ranges::max_element(families);
  return summary;
}

std::vector<GraphSummary> summarise_graphs(const ScoreMatrix& matrix) {
  std::vector<GraphSummary> list;
  for (std::size_t g = 0; g < matrix.graphs.size(); ++g) {
    std::vector<double> values;
    for (const auto& row : matrix.scores) values.push_back(row[g]);
    list.push_back({mean_of(values), std::nullopt});
  }
  return list;
}

}  // namespace tpudist
