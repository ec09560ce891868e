#include "results/report/sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/means.hpp"

namespace tpudist {
namespace {

// The mean over graphs of a run's own scores; NaN if there are none.
struct RunScore {
  double members = kNone, together = kNone, out_of_fold = kNone;
  std::string at = {};  // the kind of scores
};

RunScore final_scores(const RunRecord& run) {
  std::vector<double> valid, together, out_of_fold;  // of graphs
  for (const GraphResult& graph : run.scores->graphs) {
    std::vector<double> own;
    for (std::size_t m = 0; m < graph.members.size(); ++m)
      if (graph.held_out[m] && std::isfinite(graph.members[m])) own.push_back(graph.members[m]);
    if (own.empty()) continue;
    if (graph.fold >= 0) {
      out_of_fold.push_back(mean(own));
    } else if (graph.split == "valid") {
      valid.push_back(mean(own));
      if (std::isfinite(graph.combined)) together.push_back(graph.combined);
    }
  }
  return {mean(valid), mean(together), mean(out_of_fold), rows_text(run.scores->most_rows)};
}

// For a run without final scores: its last evaluation.
RunScore scores_so_far(const RunRecord& run) {
  if (run.curves.evaluations.empty()) return {};
  const LearningCurves::Evaluation& last = run.curves.evaluations.back();
  return {.members = mean_of_known(last.members),
          .together = last.ensemble,
          .at = fmt::format("so far, step {}{}", last.step,
                            last.rows > 0 ? fmt::format(", at most {} rows", last.rows) : "")};
}

// The seeds without the word "seed", which heads the column.
std::string seeds_of(const RunRecord& run) {
  const std::string text = seeds_text(run.init_seed, run.order_seed);
  return text.substr(text.find(' ') + 1);
}

std::string members_text(const RunRecord& run) {
  return run.first_member == 0 ? fmt::format("{}", run.members)
                               : fmt::format("{} from {}", run.members, run.first_member);
}

std::string steps_text(const RunRecord& run) {
  const std::int64_t done = run.curves.last_step();
  if (run.steps == 0 || (run.state == RunState::finished && done <= run.steps))
    return fmt::format("{}", std::max(done, run.steps));
  return fmt::format("{} of {}", done, run.steps);
}

}  // namespace

ReportFigure runs_figure(const ReportInput& input) {
  ReportFigure figure;
  figure.heading = "Runs";
  figure.sentence =
      "Every run with its mean score over validation graphs (or out of fold) and its condition "
      "when this page was written. A click on a column's name sorts by it.";
  TextTable& table = figure.table;
  table = {{"run", "variant", "collection", "seed", "members", "mean of members",
            "members together", "out of fold", "scored on", "condition", "steps", "training [s]"},
           {},
           "runs",
           true};
  for (const RunRecord& run : input.results.runs) {
    const RunScore score = run.scores ? final_scores(run) : scores_so_far(run);
    const double seconds = run.curves.steps.empty() ? kNone : run.curves.steps.back().train_seconds;
    table.rows.push_back({run.label, run.variant, run.collection, seeds_of(run), members_text(run),
                          score.members, run.members > 1 ? score.together : kNone,
                          score.out_of_fold, score.at.empty() ? "not scored" : score.at,
                          name_of(run.state), steps_text(run), TableCell(seconds, "{:.1f}")});
  }
  // An empty column would take room from the others.
  const auto says_nothing = [&](std::size_t c) {
    const std::string& name = table.columns[c].name;
    if (name == "variant") {
      return std::ranges::all_of(input.results.runs, [&](const RunRecord& run) {
        return !input.several() || run.label.find(run.variant) != std::string::npos;
      });
    }
    if (name == "collection") return input.collections.size() < 2;
    return std::ranges::all_of(table.rows, [&](const auto& row) { return row[c].exact.empty(); });
  };
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    if (!says_nothing(c)) continue;
    const auto at = static_cast<std::ptrdiff_t>(c);
    table.columns.erase(table.columns.begin() + at);
    for (auto& row : table.rows) row.erase(row.begin() + at);
  }
  return figure;
}

std::string headline_so_far(const ReportInput& input) {
  const RunRecord* best = nullptr;
  RunScore highest;
  for (const RunRecord& run : input.results.runs) {
    if (run.scores) continue;  // final scores must not be mixed with scores so far
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

}  // namespace tpudist
