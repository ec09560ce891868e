#include "results/report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "core/numbers.hpp"
#include "results/report/page.hpp"
#include "results/report/sections.hpp"

namespace tpudist {
namespace {

std::string subtitle_of(const ResultSet& results) {
  std::set<std::string> collections;
  std::map<RunState, int> states;
  for (const RunRecord& run : results.runs) {
    if (!run.collection.empty()) collections.insert(run.collection);
    ++states[run.state];
  }
  std::string text = results.sweep ? fmt::format("Sweep, stage \"{}\", ", results.stage) : "";
  text += fmt::format("{} run{}:", results.runs.size(), results.runs.size() == 1 ? "" : "s");
  std::string between = " ";
  for (const auto& [state, count] : states) {
    text += fmt::format("{}{} {}", between, count, name_of(state));
    between = ", ";
  }
  for (const std::string& collection : collections) text += fmt::format(" \xc2\xb7 {}", collection);
  return text;
}

// Up to two of the different texts, and the number of further texts.
std::string few_of(const std::vector<std::string>& texts) {
  std::vector<std::string> different;
  for (const std::string& text : texts) {
    if (std::ranges::find(different, text) == different.end()) different.push_back(text);
  }
  constexpr std::size_t kMost = 2;
  std::string shown;
  for (std::size_t i = 0; i < std::min(different.size(), kMost); ++i)
    shown += (i > 0 ? "; " : "") + different[i];
  if (different.size() > kMost) shown += fmt::format("; {} more", different.size() - kMost);
  return shown;
}

std::string counts_text(const std::set<std::int64_t>& counts) {
  if (counts.size() == 1) return format_count(*counts.begin());
  return fmt::format("{} to {}", format_count(*counts.begin()), format_count(*counts.rbegin()));
}

std::string steps_text(const ResultSet& results) {
  std::set<std::int64_t> planned, done;
  for (const RunRecord& run : results.runs) {
    if (run.steps > 0) planned.insert(run.steps);
    done.insert(run.state == RunState::finished && run.steps > 0 ? run.steps
                                                                 : run.curves.last_step());
  }
  std::string text = counts_text(done);
  if (!planned.empty() && planned != done) text += " of " + counts_text(planned);
  return text + (results.runs.size() > 1 && done.size() == 1 ? " in each run" : "");
}

std::string duration_text(const ResultSet& results) {
  double least = std::numeric_limits<double>::infinity(), most = 0, sum = 0;
  for (const RunRecord& run : results.runs) {
    if (run.curves.steps.empty()) continue;
    const double seconds = run.curves.steps.back().train_seconds;
    least = std::min(least, seconds), most = std::max(most, seconds), sum += seconds;
  }
  if (sum == 0) return {};
  if (results.runs.size() == 1) return format_seconds(sum);
  return fmt::format("{} to {} a run, {} in all", format_seconds(least), format_seconds(most),
                     format_seconds(sum));
}

// "2 ranks x 1 thread on node7 (AMD EPYC 9R14)"
std::string machine_text(const RunStart& start) {
  return fmt::format("{} rank{} x {} thread{} on {} ({})", start.ranks, start.ranks == 1 ? "" : "s",
                     start.threads, start.threads == 1 ? "" : "s", start.host, start.processor);
}

// Steps, duration, machine, program and command, as far as the runs record them.
std::vector<ReportFact> facts_of(const ResultSet& results) {
  std::vector<std::string> machines, programs, commands;
  for (const RunRecord& run : results.runs) {
    for (const RunStart& start : run.curves.starts) {
      machines.push_back(machine_text(start));
      programs.push_back(fmt::format("tpudist {}, commit {}", start.version, start.commit));
      commands.push_back(start.command);
    }
  }
  std::vector<ReportFact> facts = {{"Steps", steps_text(results)}};
  if (const std::string duration = duration_text(results); !duration.empty())
    facts.push_back({"Training", duration});
  const std::string unknown = "unknown (trained by a version that did not keep it)";
  for (const auto& [name, texts] : {std::pair("Machine", machines), std::pair("Program", programs),
                                    std::pair("Command", commands)})
    facts.push_back({name, texts.empty() ? unknown : few_of(texts)});
  if (commands.empty() && facts.back().text == unknown) {
    facts.resize(facts.size() - 3);
    facts.push_back({"Machine, program, command", unknown});
  }
  return facts;
}

}  // namespace

Report make_report(ResultSet results, bool ceilings) {
  const ReportInput input = report_input(std::move(results), ceilings);
  Report report{.title = input.results.title,
                .subtitle = subtitle_of(input.results),
                .facts = facts_of(input.results),
                .notes = input.notes,
                .sections = {}};
  for (ReportSection (*make)(const ReportInput&) :
       {summary_section, curves_section, graphs_section, variance_section, timing_section,
        configuration_section}) {
    report.sections.push_back(make(input));
  }
  // These sections need predictions and show details.
  for (ReportSection (*make)(const ReportInput&) :
       {slowdown_section, sizes_section, folds_section}) {
    ReportSection section = make(input);
    section.folded = true;
    if (section.figures.empty()) {
      section.gist = section.id == "folds" ? "needs ensemble.folds and predictions"
                                           : "needs predictions (predictions.rows)";
    }
    report.sections.push_back(std::move(section));
  }
  if (input.variants.size() > input.shown()) {
    report.sections.front().notes.push_back(fmt::format(
        "Charts below the summary show {} of {} variants{}, those with a colour of their own.",
        input.shown(), input.variants.size(),
        input.collections.size() == 1 ? ", the best" : " and collections"));
  }
  return report;
}

std::string report_html(const Report& report) {
  return page_html(report.title, report.subtitle, report.facts, report.sections);
}

std::vector<std::pair<std::string, std::string>> report_csv(const Report& report) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const ReportSection& section : report.sections) {
    for (const ReportFigure& figure : section.figures) {
      if (!figure.table.rows.empty())
        files.emplace_back(figure.table.name + ".csv", figure.table.to_csv());
    }
  }
  return files;
}

}  // namespace tpudist
