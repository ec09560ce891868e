#include "results/report/variant_pairs.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/means.hpp"
#include "results/scores/system_scores.hpp"
#include "statistics/intervals/interval.hpp"
#include "statistics/intervals/score_intervals.hpp"

namespace tpudist {
namespace {

ScoreSummary summary_of(const RunScoreTable& scores) {
  ScoreSummary summary;
  summary.mean = mean_score(scores);
  summary.deviation = kNone;
  summary.trainings = scores.run_count();
  summary.graphs = scores.graph_count();
  summary.families = scores.family_count();
  if (summary.trainings > 1) {
    const std::vector<double> means = run_means(scores);
    summary.deviation =
        std::sqrt(squares_around(means, mean(means)) / static_cast<double>(means.size() - 1));
    summary.these_graphs = ends_of(run_interval(scores).value());
    summary.over = fmt::format("{} trainings", summary.trainings);
    summary.alike = !summary.these_graphs;
  }
  if (const auto families = family_interval(std::span(&scores, 1))) {
    summary.other_families = ends_of(families->interval);
    for (const std::string& kin : families->notes) summary.note += kin + ".";
  }
  return summary;
}

// Notes what is missing, and why the interval that is usually wider is narrower.
void add_notes(ScoreSummary& summary) {
  const auto add = [&](const std::string& text) {
    summary.note += (summary.note.empty() ? "" : " ") + text;
  };
  if (summary.trainings == 1)
    add("One training: nothing here says how far another one would score; train at least 3 "
        "seeds, a number that you fix beforehand.");
  if (summary.alike) add(alike_line("Scores of all trainings") + ".");
  if (!summary.other_families) {
    add(summary.families < 2 ? "Other families: needs graphs of two families."
                             : "Other families: " + alike_line("all scores") + ".");
  }
  const auto &these = summary.these_graphs, &other = summary.other_families;
  if (summary.trainings == 1 && these && other &&
      other->high - other->low < these->high - these->low)
    add("The interval for other families is the narrower one: it is of this model only, while the "
        "other one lets its members vary.");
}

}  // namespace

std::optional<ChartInterval> ends_of(const Interval& interval) {
  if (!interval.is_known()) return std::nullopt;
  return ChartInterval{interval.low, interval.high};
}

std::optional<ScoreSummary> summarise_members(const ReportedVariant& variant, bool out_of_fold) {
  const RunScoreTable& scores = out_of_fold ? variant.out_of_fold : variant.valid;
  const ScoreMatrix& matrix = out_of_fold ? variant.out_of_fold : variant.members;
  if (scores.graphs.empty()) return std::nullopt;
  ScoreSummary summary = summary_of(scores);
  if (summary.trainings == 1 && matrix.rows.size() > 1) {
    summary.these_graphs = ends_of(run_interval(matrix).value());
    if (summary.these_graphs)
      summary.over = fmt::format("{} {} of one training", matrix.rows.size(),
                                 out_of_fold ? "columns of members" : "members");
  }
  add_notes(summary);
  return summary;
}

std::optional<ScoreSummary> summarise_together(const ReportedVariant& variant) {
  const RunScoreTable& scores = variant.together;
  if (scores.graphs.empty() || variant.members.rows.size() <= variant.valid.scores.front().size())
    return std::nullopt;
  ScoreSummary summary = summary_of(scores);
  const VariantRankings& rankings = variant.rankings;
  if (summary.trainings == 1 && rankings.without.size() > 1 &&
      rankings.sized_graphs == summary.graphs) {
    summary.these_graphs =
        ends_of(jackknife_interval(summary.mean, rankings.without, kIntervalLevel, scores.reach()));
    if (summary.these_graphs)
      summary.over = fmt::format("{} members of one training", rankings.sized_members);
  }
  add_notes(summary);
  return summary;
}

}  // namespace tpudist
