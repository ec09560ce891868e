#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "report/report_section.hpp"
#include "results/result_set.hpp"

namespace tpudist {

// What a report says.
struct Report {
  std::string title, subtitle;
  std::vector<ReportFact> facts;  // steps, duration, machine, program and command
  std::vector<std::string>
      notes;  // what counts once although it was given twice, and the like; on the page, too
  std::vector<ReportSection> sections;
};

// Of runs or a sweep, also unfinished and damaged ones. Reads their predictions, and the run times of the
// shards that they trained on. `ceilings`: whether noise ceilings are estimated, which takes most of the
// time.
Report make_report(ResultSet results, bool ceilings = true);

// The page, and the tables with rows as pairs of a file name and CSV text, in the order of the page.
std::string report_html(const Report& report);
std::vector<std::pair<std::string, std::string>> report_csv(const Report& report);

}  // namespace tpudist
