#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/charts/interval_chart.hpp"
#include "report/report_input.hpp"

namespace tpudist {

// A mean over graphs with how sure it is.
struct ScoreSummary {
  double mean = 0;       // over trainings and graphs
  double deviation = 0;  // between the means of trainings; NaN of a single one
  int trainings = 0, graphs = 0, families = 0;
  std::optional<ChartInterval> these_graphs, other_families;  // 95 %
  // What `these_graphs` is over: "3 trainings", or "5 members of one training", which says nothing of
  // other trainings; empty where there is none.
  std::string over;
  std::string note;  // why an interval is not there, or the wider one is the narrower; may be empty
};

// Of a variant's trainings, by the mean of their members, on validation graphs or out of fold. Nothing
// where there are no scores.
std::optional<ScoreSummary> summarise_members(const ReportedVariant& variant, bool out_of_fold);
// Of the members of each training together on validation graphs. Of one training these_graphs is the
// jackknife over its members.
std::optional<ScoreSummary> summarise_together(const ReportedVariant& variant);

// Of each graph: the mean over rows, and its 95 % interval where rows are at least two.
struct GraphScoreSummary {
  double mean = 0;
  std::optional<ChartInterval> interval;
};
std::vector<GraphScoreSummary> summarise_graphs(const RunScores& scores);

}  // namespace tpudist
