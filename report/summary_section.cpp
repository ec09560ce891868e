#include <fmt/format.h>

#include <cmath>

#include "report/charts/interval_chart.hpp"
#include "report/score_summary.hpp"
#include "report/sections.hpp"

namespace tpudist {
namespace {

// A mean of a variant on some graphs.
struct SummaryLine {
  std::string variant, graphs, what;
  int colour = 1;
  ScoreSummary summary;
};

std::string interval_text(const std::optional<ChartInterval>& interval) {
  return interval ? fmt::format("{:.4f} to {:.4f}", interval->low, interval->high) : "-";
}

std::vector<SummaryLine> lines_of(const ReportInput& input) {
  std::vector<SummaryLine> lines;
  for (const ReportedVariant& variant : input.variants) {
    if (!variant.members.rows.empty())
      lines.push_back({variant.title, "validation", "one member", 1, summarise(variant.members)});
    if (!variant.out_of_fold.rows.empty())
      lines.push_back(
          {variant.title, "out of fold", "one member", 3, summarise(variant.out_of_fold)});
    if (const auto together = summarise(variant.rankings)) {
      lines.push_back({variant.title, "validation",
                       fmt::format("{} members together", variant.rankings.sized_members), 2,
                       *together});
    }
  }
  return lines;
}

ReportFigure scores_figure(const ReportInput& input) {
  ReportFigure figure;
  figure.heading = "Scores";
  figure.sentence =
      "The mean over graphs of the score, larger is better. The heavy line is the 95 % interval "
      "for these "
      "graphs and other runs (of members together: the jackknife over members), the thin line that "
      "for other "
      "model families, too; of a single run it is of this model only. Neither sees what no graph "
      "here shows: "
      "an interval from n families cannot see failures rarer than about 1 in n.";
  figure.legend = {{"f1", "validation graphs"},
                   {"f2", "validation graphs, all members together"},
                   {"f3", "out of fold"}};
  figure.table = {"scores",
                  {"runs", "graphs", "of", "mean", "these graphs, other runs (95 %)",
                   "other families, other runs (95 %)", "deviation between runs", "runs or members",
                   "graphs", "families", "note"},
                  {}};
  IntervalChart chart{.label = "Mean scores with their intervals",
                      .x_name = "mean score over graphs",
                      .bars = false,
                      .rows = {}};
  for (const SummaryLine& line : lines_of(input)) {
    const ScoreSummary& s = line.summary;
    figure.table.rows.push_back({line.variant, line.graphs, line.what, TableCell(s.mean),
                                 interval_text(s.these_graphs), interval_text(s.other_families),
                                 TableCell(s.deviation), TableCell::count(s.rows),
                                 TableCell::count(s.graphs), TableCell::count(s.families), s.note});
    chart.rows.push_back({.label = (input.variants.size() > 1 ? line.variant + ", " : "") +
                                   line.graphs + ", " + line.what,
                          .value = s.mean,
                          .colour = line.colour,
                          .interval = s.these_graphs,
                          .wider = s.other_families,
                          .dots = {},
                          .second = std::nullopt,
                          .limit = std::nullopt,
                          .limit_interval = std::nullopt,
                          .title = fmt::format("{:.4f}", s.mean)});
  }
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

ReportFigure runs_figure(const ReportInput& input) {
  ReportFigure figure;
  figure.heading = "Runs";
  figure.sentence = "Every run with its condition when this page was written.";
  figure.table = {"runs",
                  {"run", "variant", "collection", "condition", "logged step", "of steps", "seeds",
                   "members", "first member", "scores from", "training [s]"},
                  {}};
  for (const RunRecord& run : input.results.runs) {
    const double seconds =
        run.curves.steps.empty() ? std::nan("") : run.curves.steps.back().train_seconds;
    figure.table.rows.push_back(
        {run.label, run.variant, run.collection, std::string(name_of(run.condition)),
         TableCell::count(run.curves.last_step()), TableCell::count(run.steps),
         fmt::format("{}/{}", run.init_seed, run.order_seed), TableCell::count(run.members),
         TableCell::count(run.first_member),
         run.predictions ? "predictions.h5"
         : run.scores    ? "scores.json"
                         : "none",
         TableCell(seconds, 1)});
  }
  return figure;
}

}  // namespace

ReportSection summary_section(const ReportInput& input) {
  ReportSection section{.id = "summary", .title = "Summary"};
  int unfinished = 0;
  for (const RunRecord& run : input.results.runs) {
    if (run.condition != RunCondition::finished) ++unfinished;
    for (const std::string& fault : run.faults) section.missing.push_back(fault);
    if (!run.error.empty())
      section.missing.push_back(fmt::format("{} failed: {}", run.label, run.error));
  }
  if (unfinished > 0) {
    section.missing.insert(
        section.missing.begin(),
        fmt::format("{} of {} runs have not finished: what follows is of what there is.",
                    unfinished, input.results.runs.size()));
  }
  for (const ReportedVariant& variant : input.variants) {
    for (const std::string& note : variant.notes) section.missing.push_back(note);
  }
  ReportFigure scores = scores_figure(input);
  if (scores.table.rows.empty()) {
    section.missing.push_back(
        "There are no scores yet. A run writes them when its steps are done: scores.json with "
        "train.last_evaluation, predictions.h5 with predictions.rows.");
  } else {
    section.figures.push_back(std::move(scores));
  }
  section.figures.push_back(runs_figure(input));
  return section;
}

}  // namespace tpudist
