#include "report/report.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "report/page.hpp"
#include "report/sections.hpp"

namespace tpudist {
namespace {

std::string subtitle_of(const ResultSet& results) {
  std::set<std::string> collections;
  std::map<RunCondition, int> conditions;
  for (const RunRecord& run : results.runs) {
    if (!run.collection.empty()) collections.insert(run.collection);
    ++conditions[run.condition];
  }
  std::string text = results.sweep ? fmt::format("Sweep, stage \"{}\", ", results.stage) : "";
  text += fmt::format("{} run{}:", results.runs.size(), results.runs.size() == 1 ? "" : "s");
  std::string between = " ";
  for (const auto& [condition, count] : conditions) {
    text += fmt::format("{}{} {}", between, count, name_of(condition));
    between = ", ";
  }
  for (const std::string& collection : collections) text += fmt::format(" \xc2\xb7 {}", collection);
  return text;
}

}  // namespace

Report make_report(ResultSet results, bool ceilings) {
  const ReportInput input = report_input(std::move(results), ceilings);
  Report report{
      .title = input.results.title, .subtitle = subtitle_of(input.results), .sections = {}};
  for (ReportSection (*make)(const ReportInput&) :
       {summary_section, curves_section, graphs_section, folds_section, variance_section,
        sizes_section, ranks_section, slowdown_section, suspects_section, timing_section,
        configuration_section}) {
    report.sections.push_back(make(input));
  }
  if (input.variants.size() > input.shown()) {
    report.sections.front().notes.push_back(
        fmt::format("Charts show the first {} of {} variants and collections.", input.shown(),
                    input.variants.size()));
  }
  return report;
}

std::string report_html(const Report& report) {
  return page_html(report.title, report.subtitle, report.sections);
}

std::vector<std::pair<std::string, std::string>> report_csv(const Report& report) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const ReportSection& section : report.sections) {
    for (const ReportFigure& figure : section.figures) {
      if (!figure.table.rows.empty())
        files.emplace_back(figure.table.name + ".csv", table_csv(figure.table));
    }
  }
  return files;
}

}  // namespace tpudist
