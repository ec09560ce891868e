#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "results/report/page.hpp"
#include "results/scores/result_set.hpp"

namespace tpudist {

// The content of a report.
struct Report {
  std::string title, subtitle;
  std::vector<ReportFact> facts;   // steps, duration, machine, program and command
  std::vector<std::string> notes;  // trainings that were given twice and count once
  std::vector<ReportSection> sections;
};

// The report of runs or a sweep, even if unfinished or damaged. Reads the predictions, and the run
// times of the training shards. `ceilings`: whether to estimate noise ceilings, which takes most of
// the time.
Report make_report(ResultSet results, bool ceilings = true);

// The page; and its tables with rows, in order, as pairs of a file name and CSV text.
std::string report_html(const Report& report);
std::vector<std::pair<std::string, std::string>> report_csv(const Report& report);

}  // namespace tpudist
