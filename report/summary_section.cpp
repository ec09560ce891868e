#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <utility>

#include "report/charts/interval_chart.hpp"
#include "report/headline.hpp"
#include "report/score_summary.hpp"
#include "report/sections.hpp"
#include "report/variant_pairs.hpp"

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

// "Members of one training" and "other trainings" are different questions: the sentence names those
// that are asked here.
std::string lines_text(const std::vector<SummaryLine>& lines) {
  bool trainings = false, members = false, families = false;
  for (const SummaryLine& line : lines) {
    trainings = trainings || line.summary.trainings > 1;
    members = members || (line.summary.trainings == 1 && line.summary.these_graphs);
    families = families || line.summary.other_families;
  }
  std::string text;
  if (trainings) text += " Heavy line: 95 % interval for these graphs and other trainings.";
  if (members) {
    text += trainings
                ? " Of a single training it is for other members of it."
                : " Heavy line: 95 % interval for these graphs and other members of this training.";
  }
  if (families) {
    text += fmt::format(
        " Thin line: {}. It cannot see failures rarer than about 1 in as many families as there "
        "are.",
        trainings ? "the same for other model families" : "this model on other model families");
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
      several ? fmt::format("scores-{}", number) : "scores",
      {"variant", "graphs", "of", "mean", "these graphs (95 %)", "over", "other families (95 %)",
       "SD between trainings", "trainings", "graphs", "families", "note"},
      {}};
  if (lines.empty()) return figure;
  const std::string& metric = lines.front().variant->metric;
  figure.sentence = fmt::format(
      "Mean {} over graphs, larger is better. Circle: the mean of the members, the number that "
      "variants "
      "are compared by. Square: the members of a training together, as the ensemble ranks.{}",
      metric, lines_text(lines));
  IntervalChart chart{.label = "Scores with their intervals", .x_name = metric, .rows = {}};
  const ReportedVariant* last = nullptr;
  std::set<std::string> notes;
  for (const SummaryLine& line : lines) {
    const ScoreSummary& s = line.summary;
    figure.table.rows.push_back({line.variant->name(), line.graphs, line.of, TableCell(s.mean),
                                 interval_text(s.these_graphs), s.over.empty() ? "-" : s.over,
                                 interval_text(s.other_families), TableCell(s.deviation),
                                 TableCell::count(s.trainings), TableCell::count(s.graphs),
                                 TableCell::count(s.families), s.note});
    if (!s.note.empty()) notes.insert(s.note);
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
  figure.remarks.assign(notes.begin(), notes.end());
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
      "Every pair of variants, A minus B, mean of members {}. Heavy line and p: other trainings, "
      "for all {} "
      "pairs at once (Bonferroni, Holm); they need two trainings of both. Thin line: other "
      "families, for the "
      "pair alone.",
      found.out_of_fold ? "out of fold" : "on validation graphs", found.pairs.size());
  figure.table = {several ? fmt::format("differences-{}", number) : "differences",
                  {"A", "B", "A - B", "other trainings (95 %)", "p", "other families (95 %)"},
                  {}};
  IntervalChart chart{.label = "Differences between variants",
                      .x_name = "difference of " + input.variants[found.best].metric,
                      .zero = true,
                      .rows = {}};
  constexpr std::size_t kMostDrawn = 15;
  for (const VariantPair& pair : found.pairs) {
    const std::string &a = input.variants[pair.a].name(), &b = input.variants[pair.b].name();
    figure.table.rows.push_back({a, b, TableCell(pair.difference), signed_text(pair.trainings),
                                 TableCell(pair.p.value_or(std::nan("")), 4),
                                 signed_text(pair.families)});
    if (chart.rows.size() == kMostDrawn) continue;
    IntervalRow row{.label = a + " - " + b,
                    .value = pair.difference,
                    .colour = 0,
                    .text = fmt::format("{:+.4f}", pair.difference)};
    if (pair.trainings) row.interval = ChartInterval{pair.trainings->low, pair.trainings->high};
    if (pair.families) row.wider = ChartInterval{pair.families->low, pair.families->high};
    chart.rows.push_back(std::move(row));
  }
  const auto narrower = [](const VariantPair& pair) {
    return pair.trainings && pair.families &&
           pair.families->high - pair.families->low < pair.trainings->high - pair.trainings->low;
  };
  if (std::ranges::any_of(found.pairs, narrower)) {
    figure.remarks.push_back(
        "Where the thin line (other families) is the shorter one, few trainings leave few degrees "
        "of "
        "freedom for the heavy line, which has to hold for all pairs at once, too.");
  }
  if (found.pairs.size() > kMostDrawn)
    figure.sentence += fmt::format(" The first {} are drawn; the table has all.", kMostDrawn);
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

// The mean over graphs of what a run's own scores say; NaN where there is nothing.
struct RunScore {
  double members = std::nan(""), together = std::nan(""), out_of_fold = std::nan("");
  std::string at;  // what they are of
};

double mean_or_none(double sum, double count) {
  return count > 0 ? sum / count : std::nan("");
}

RunScore final_scores(const RunRecord& run) {
  RunScore score;
  double members = 0, member_count = 0, together = 0, together_count = 0, held = 0, held_count = 0;
  for (const ScoredGraph& graph : run.scores->graphs) {
    double sum = 0, count = 0;
    for (std::size_t m = 0; m < graph.members.size(); ++m) {
      if (graph.out_of_fold[m] && std::isfinite(graph.members[m])) sum += graph.members[m], ++count;
    }
    if (count == 0) continue;
    if (graph.fold >= 0) {
      held += sum / count, ++held_count;
    } else if (graph.split == "valid") {
      members += sum / count, ++member_count;
      if (std::isfinite(graph.combined)) together += graph.combined, ++together_count;
    }
  }
  score.members = mean_or_none(members, member_count);
  score.together = mean_or_none(together, together_count);
  score.out_of_fold = mean_or_none(held, held_count);
  score.at = run.scores->most_rows > 0 ? fmt::format("at most {} rows", run.scores->most_rows)
                                       : "all rows";
  return score;
}

// Of a run that has no final scores yet: its last evaluation.
RunScore scores_so_far(const RunRecord& run) {
  RunScore score;
  if (run.curves.evaluations.empty()) return score;
  const LoggedEvaluation& last = run.curves.evaluations.back();
  double sum = 0, count = 0;
  for (const double value : last.members) {
    if (std::isfinite(value)) sum += value, ++count;
  }
  score.members = mean_or_none(sum, count);
  score.together = last.ensemble;
  score.at = fmt::format("so far, step {}{}", last.step,
                         last.rows > 0 ? fmt::format(", at most {} rows", last.rows) : "");
  return score;
}

std::string seeds_text(const RunRecord& run) {
  return run.init_seed == run.order_seed ? fmt::format("{}", run.init_seed)
                                         : fmt::format("{}/{}", run.init_seed, run.order_seed);
}

std::string members_text(const RunRecord& run) {
  return run.first_member == 0 ? fmt::format("{}", run.members)
                               : fmt::format("{} from {}", run.members, run.first_member);
}

std::string steps_text(const RunRecord& run) {
  const std::int64_t done = run.curves.last_step();
  if (run.steps == 0 || (run.condition == RunCondition::finished && done <= run.steps))
    return fmt::format("{}", std::max(done, run.steps));
  return fmt::format("{} of {}", done, run.steps);
}

ReportFigure runs_figure(const ReportInput& input) {
  ReportFigure figure;
  figure.heading = "Runs";
  figure.sentence =
      "Every run with its mean score over validation graphs (or out of fold) and its condition "
      "when this "
      "page was written. A click on a column's name sorts by it.";
  std::vector<std::pair<std::string, std::vector<TableCell>>> columns = {{"run", {}},
                                                                         {"variant", {}},
                                                                         {"collection", {}},
                                                                         {"seed", {}},
                                                                         {"members", {}},
                                                                         {"mean of members", {}},
                                                                         {"members together", {}},
                                                                         {"out of fold", {}},
                                                                         {"scored on", {}},
                                                                         {"condition", {}},
                                                                         {"steps", {}},
                                                                         {"training [s]", {}}};
  for (const RunRecord& run : input.results.runs) {
    const RunScore score = run.scores ? final_scores(run) : scores_so_far(run);
    const double none = std::nan("");
    const double seconds = run.curves.steps.empty() ? none : run.curves.steps.back().train_seconds;
    auto column = columns.begin();
    for (TableCell cell : std::initializer_list<TableCell>{
             run.label, run.variant, run.collection, seeds_text(run), members_text(run),
             TableCell(score.members), TableCell(run.members > 1 ? score.together : none),
             TableCell(score.out_of_fold), score.at.empty() ? "not scored" : score.at,
             std::string(name_of(run.condition)), steps_text(run), TableCell(seconds, 1)})
      (column++)->second.push_back(std::move(cell));
  }
  // A column that says nothing takes room from the others.
  const auto says_nothing = [&](const auto& column) {
    const auto& [name, cells] = column;
    if (name == "variant") {
      return std::ranges::all_of(input.results.runs, [&](const RunRecord& run) {
        return !input.several() || run.label.find(run.variant) != std::string::npos;
      });
    }
    if (name == "collection") return input.collections.size() < 2;
    return std::ranges::all_of(cells, [](const TableCell& cell) { return cell.exact.empty(); });
  };
  std::erase_if(columns, says_nothing);
  figure.table = {"runs", {}, std::vector<std::vector<TableCell>>(input.results.runs.size())};
  figure.table.stacked = true;
  for (auto& [name, cells] : columns) {
    figure.table.columns.push_back(name);
    for (std::size_t r = 0; r < cells.size(); ++r)
      figure.table.rows[r].push_back(std::move(cells[r]));
  }
  return figure;
}

// "2 of 9 runs have not finished (1 running at step 40 of 60, ...)".
void tell_unfinished(const ReportInput& input, ReportSection& section) {
  std::size_t unfinished = 0, scored = 0;
  for (const RunRecord& run : input.results.runs) {
    if (run.condition == RunCondition::finished) continue;
    ++unfinished;
    if (!run.scores && !run.curves.evaluations.empty()) ++scored;
  }
  if (unfinished == 0) return;
  section.missing.insert(
      section.missing.begin(),
      fmt::format(
          "{} of {} runs have not finished: what follows is of what there is.{}", unfinished,
          input.results.runs.size(),
          scored > 0 ? " Their scores so far are in the table of runs and in the curves." : ""));
}

// The run with the highest score so far, where no run has final scores.
std::string headline_so_far(const ReportInput& input) {
  const RunRecord* best = nullptr;
  RunScore highest;
  for (const RunRecord& run : input.results.runs) {
    if (run.scores) continue;  // final ones, which cannot stand beside the others
    const RunScore score = scores_so_far(run);
    if (std::isnan(score.members) || (best && score.members <= highest.members)) continue;
    best = &run, highest = score;
  }
  if (!best) return {};
  return fmt::format(
      "No final scores yet. {}{} {:.4f} {}{} (mean of members) after step {} of {}.", best->label,
      input.results.runs.size() > 1 ? " has the highest so far:" : " has", highest.members,
      input.variants.front().metric, input.results.runs.size() > 1 ? "" : " so far",
      best->curves.evaluations.back().step, best->steps);
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
  tell_unfinished(input, section);
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
        "with "
        "train.last_evaluation, predictions.h5 with predictions.rows.");
  }
  section.figures.push_back(runs_figure(input));
  return section;
}

}  // namespace tpudist
