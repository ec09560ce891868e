#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/numbers.hpp"
#include "core/text.hpp"
#include "results/report/charts/charts.hpp"
#include "results/report/sections.hpp"
#include "results/report/variant_pairs.hpp"

namespace tpudist {
namespace {

// A mean of a variant on some graphs.
struct SummaryLine {
  const ReportedVariant* variant = nullptr;
  std::string graphs, of;
  bool together = false;
  ScoreSummary summary;
};

std::string interval_text(const std::optional<ChartInterval>& interval) {
  return interval ? fmt::format("{:.4f} to {:.4f}", interval->low, interval->high) : "-";
}

std::vector<SummaryLine> lines_of(const ReportInput& input, const std::string& collection) {
  std::vector<SummaryLine> lines;
  const auto add = [&](const ReportedVariant& variant, const char* graphs, bool together,
                       const std::optional<ScoreSummary>& summary) {
    if (summary) {
      lines.push_back({&variant, graphs, together ? "members together" : "mean of members",
                       together, *summary});
    }
  };
  for (const ReportedVariant& variant : input.variants) {
    if (variant.collection != collection) continue;
    add(variant, "validation", false, summarise_members(variant, false));
    add(variant, "validation", true, summarise_together(variant));
    add(variant, "out of fold", false, summarise_members(variant, true));
  }
  return lines;
}

// The rules by which the runs combine their members: "z_score".
std::string rules_text(const ReportInput& input) {
  std::set<std::string> rules;
  for (const RunRecord& run : input.results.runs) {
    if (run.scores) rules.insert(to_text(run.scores->combination));
  }
  return join(std::vector<std::string>(rules.begin(), rules.end()), ", ");
}

// "Members of one training" and "other trainings" are different questions: the sentence names those
// that this figure answers.
std::string lines_text(const std::vector<SummaryLine>& lines) {
  bool trainings = false, members = false, families = false;
  for (const SummaryLine& line : lines) {
    trainings = trainings || line.summary.trainings > 1;
    members = members || (line.summary.trainings == 1 && line.summary.these_graphs);
    families = families || line.summary.other_families;
  }
  std::string text;
  if (trainings) text += " Heavy line: 95 % interval for these graphs, if trained again.";
  if (members) {
    text += trainings
                ? " Of a single training it is for other members of it."
                : " Heavy line: 95 % interval for these graphs and other members of this training.";
  }
  if (families) {
    text += fmt::format(
        " Thin line: {}. n families without a failure allow it in up to 1 - 0.05^(1/n) of all (4: "
        "53 %); where some fail or differ far more than others, the line covers 63 to 90 %.",
        trainings ? "the same for other model families"
                  : "the average member of this training on other model families");
  }
  return text;
}

ReportFigure scores_figure(const ReportInput& input, const std::string& collection,
                           std::size_t number) {
  const std::vector<SummaryLine> lines = lines_of(input, collection);
  const bool several = input.collections.size() > 1;
  ReportFigure figure;
  figure.heading = several ? "Scores on " + collection : "Scores";
  figure.table = {
      {"variant", "graphs", "of", "mean", "these graphs (95 %)", "over", "other families (95 %)",
       "SD between trainings", "trainings", "graphs", "families", "note"},
      {},
      several ? fmt::format("scores-{}", number) : "scores"};
  if (lines.empty()) return figure;
  const std::string& metric = lines.front().variant->metric;
  figure.sentence = fmt::format(
      "Mean {} over graphs, larger is better. Circle: the mean of the members, the number that "
      "variants are compared by. Square: the members of a training together, combined by {}.{}",
      metric, rules_text(input), lines_text(lines));
  IntervalChart chart{.label = "Scores with their intervals", .x_name = metric};
  constexpr std::size_t kMostDrawn = 60;
  if (lines.size() > kMostDrawn) {
    figure.sentence +=
        fmt::format(" {} of {} rows are drawn; the table has all.", kMostDrawn, lines.size());
  }
  const ReportedVariant* last = nullptr;
  std::map<std::string, std::vector<std::string>> notes;  // the scores that each note is about
  for (const SummaryLine& line : lines) {
    const ScoreSummary& s = line.summary;
    figure.table.rows.push_back({line.variant->name(), line.graphs, line.of, s.mean,
                                 interval_text(s.these_graphs), s.over.empty() ? "-" : s.over,
                                 interval_text(s.other_families), s.deviation,
                                 TableCell::count(s.trainings), TableCell::count(s.graphs),
                                 TableCell::count(s.families), s.note});
    if (!s.note.empty()) {
      notes[s.note].push_back(
          about(*line.variant, (line.graphs == "validation" ? "" : line.graphs + ", ") + line.of));
    }
    if (chart.rows.size() == kMostDrawn) continue;
    chart.rows.push_back(
        {.heading = line.variant != last ? line.variant->title : "",
         .label = (line.graphs == "validation" ? "" : line.graphs + ", ") + line.of,
         .value = s.mean,
         .colour = line.variant->colour,
         .square = line.together,
         .interval = s.these_graphs,
         .wider = s.other_families,
         .text = fmt::format("{:.4f}", s.mean),
         .title = fmt::format("{:.4f}", s.mean)});
    last = line.variant;
  }
  for (const auto& [note, of] : notes) {
    figure.remarks.push_back(
        of.size() == lines.size() ? note : fmt::format("{} ({})", note, join(of, "; ")));
  }
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

std::string signed_text(const std::optional<Interval>& interval) {
  return interval ? fmt::format("{:+.4f} to {:+.4f}", interval->low, interval->high) : "-";
}

ReportFigure pairs_figure(const ReportInput& input, const VariantComparison& found,
                          const std::string& collection, std::size_t number) {
  const bool several = input.collections.size() > 1;
  ReportFigure figure;
  figure.heading = several ? "Differences on " + collection : "Differences between variants";
  figure.sentence = fmt::format(
      "The better variant minus the other, mean of members {}. Heavy line and p: other "
      "trainings{}{}; they need two trainings of both. Thin line: other families, for the pair "
      "alone.",
      found.out_of_fold ? "out of fold" : "on validation graphs",
      found.pairs.size() == 1 ? "" : fmt::format(", for all {} pairs at once", found.pairs.size()),
      found.method.empty() ? "" : fmt::format(" ({} decides)", found.method));
  figure.table = {{"better", "other", "better - other", "if trained again (95 %)", "p",
                   "other families (95 %)"},
                  {},
                  several ? fmt::format("differences-{}", number) : "differences"};
  IntervalChart chart{.label = "Differences between variants",
                      .x_name = "difference of " + input.variants[found.best].metric,
                      .zero = true};
  constexpr std::size_t kMostDrawn = 15;
  for (const VariantComparison::Pair& pair : found.pairs) {
    const std::string &a = input.variants[pair.a].name(), &b = input.variants[pair.b].name();
    figure.table.rows.push_back(
        {a, b, pair.difference, signed_text(pair.trainings), pair.p, signed_text(pair.families)});
    if (chart.rows.size() == kMostDrawn) continue;
    IntervalChart::Row row{.label = a + " - " + b,
                           .value = pair.difference,
                           .colour = 0,
                           .text = fmt::format("{:+.4f}", pair.difference)};
    if (pair.trainings) row.interval = ChartInterval{pair.trainings->low, pair.trainings->high};
    if (pair.families) row.wider = ChartInterval{pair.families->low, pair.families->high};
    chart.rows.push_back(std::move(row));
  }
  const auto narrower = [](const VariantComparison::Pair& pair) {
    return pair.trainings && pair.families &&
           pair.families->high - pair.families->low < pair.trainings->high - pair.trainings->low;
  };
  if (std::ranges::any_of(found.pairs, narrower)) {
    figure.remarks.push_back(
        "Where the thin line (other families) is the shorter one, few trainings leave few degrees "
        "of freedom for the heavy line, which has to hold for all pairs at once, too.");
  }
  if (found.pairs.size() > kMostDrawn)
    figure.sentence += fmt::format(" The first {} are drawn; the table has all.", kMostDrawn);
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

// Notes first how many runs have not finished.
void log_unfinished(const ReportInput& input, ReportSection& section) {
  std::size_t unfinished = 0, scored = 0;
  for (const RunRecord& run : input.results.runs) {
    if (run.state == RunState::finished) continue;
    ++unfinished;
    if (!run.scores && !run.curves.evaluations.empty()) ++scored;
  }
  if (unfinished == 0) return;
  section.missing.insert(
      section.missing.begin(),
      fmt::format(
          "Not finished: {} of {}. What follows is of what there is.{}", unfinished,
          counted(std::ssize(input.results.runs), "run"),
          scored > 0 ? " Their scores so far are in the table of runs and in the curves." : ""));
}

}  // namespace

ReportSection summary_section(const ReportInput& input) {
  ReportSection section{.id = "summary", .title = "Summary"};
  section.missing = input.notes;
  for (const RunRecord& run : input.results.runs) {
    for (const std::string& fault : run.faults) section.missing.push_back(fault);
    if (!run.error.empty())
      section.missing.push_back(fmt::format("{} failed: {}", run.label, run.error));
  }
  log_unfinished(input, section);
  for (const ReportedVariant& variant : input.variants) {
    for (const std::string& note : variant.notes) section.missing.push_back(note);
  }
  bool any = false;
  for (std::size_t c = 0; c < input.collections.size(); ++c) {
    const std::string& collection = input.collections[c];
    const VariantComparison found = compare_variants(input, collection);
    for (std::string& text : headline(input, found)) section.headline.push_back(std::move(text));
    ReportFigure scores = scores_figure(input, collection, c + 1);
    any = any || !scores.table.rows.empty();
    if (!scores.table.rows.empty()) section.figures.push_back(std::move(scores));
    if (!found.pairs.empty())
      section.figures.push_back(pairs_figure(input, found, collection, c + 1));
  }
  if (!any) {
    if (std::string text = headline_so_far(input); !text.empty())
      section.headline.push_back(std::move(text));
    section.missing.push_back(
        "There are no final scores yet. A run writes them when its steps are done: scores.json "
        "with train.last_evaluation, predictions.h5 with predictions.rows.");
  }
  section.figures.push_back(runs_figure(input));
  return section;
}

}  // namespace tpudist
