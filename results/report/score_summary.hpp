#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/report/charts/charts.hpp"
#include "results/report/report_input.hpp"
#include "statistics/intervals/interval.hpp"

namespace tpudist {

// A mean over graphs with its intervals.
struct ScoreSummary {
  double mean = 0;       // over trainings and graphs
  double deviation = 0;  // between the means of trainings; NaN for a single training
  int trainings = 0, graphs = 0, families = 0;
  std::optional<ChartInterval> these_graphs, other_families;  // 95 %
  // The sample of `these_graphs`: "3 trainings", or "5 members of one training", which says nothing
  // about other trainings; empty without an interval.
  std::string over;
  bool alike = false;  // several trainings score alike: their spread is unknown
  std::string note;    // how kin count, why an interval is missing or narrower; may be empty
};

// Summarises a variant's trainings by the mean of their members, on validation graphs or out of
// fold. Nothing without scores.
std::optional<ScoreSummary> summarise_members(const ReportedVariant& variant, bool out_of_fold);
// Summarises the members of each training together, on validation graphs. With one training
// `these_graphs` is the jackknife over its members.
std::optional<ScoreSummary> summarise_together(const ReportedVariant& variant);

// The ends of an interval; nothing if the spread is unknown (Interval::is_known).
std::optional<ChartInterval> ends_of(const Interval& interval);

}  // namespace tpudist
