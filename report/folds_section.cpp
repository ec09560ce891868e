#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/charts/heat_map.hpp"
#include "report/sections.hpp"
#include "report/variant_section.hpp"

namespace tpudist {
namespace {

// The mean score of the member that holds out a fold, on the graphs of the fold.
struct FoldScore {
  int member = 0, graphs = 0;
  double score = 0;
};

std::string seed_name(const RunRecord& run, int member) {
  std::string name = run.init_seed == run.order_seed
                         ? fmt::format("{}", run.init_seed)
                         : fmt::format("{}/{}", run.init_seed, run.order_seed);
  if (run.folds > 0 && member >= run.folds) name += fmt::format(" ({})", member / run.folds + 1);
  return name;
}

std::map<std::pair<std::string, int>, FoldScore> fold_scores(const ReportedVariant& variant) {
  std::map<std::pair<std::string, int>, FoldScore> scores;
  for (const RunRecord& run : variant.runs) {
    if (!run.scores) continue;
    for (std::size_t m = 0; m < run.scores->members.size(); ++m) {
      const PredictedMember& member = run.scores->members[m];
      FoldScore cell{.member = member.number, .graphs = 0, .score = 0};
      for (const ScoredGraph& graph : run.scores->graphs) {
        if (member.fold < 0 || graph.fold != member.fold || !graph.out_of_fold[m] ||
            std::isnan(graph.members[m]))
          continue;
        cell.score += graph.members[m];
        ++cell.graphs;
      }
      if (cell.graphs == 0) continue;
      cell.score /= cell.graphs;
      scores[{seed_name(run, member.number), member.fold}] = cell;
    }
  }
  return scores;
}

ReportFigure figure_of(const ReportedVariant& variant) {
  const auto scores = fold_scores(variant);
  ReportFigure figure;
  figure.heading = variant.title;
  figure.sentence = fmt::format(
      "Mean {} of the member of each seed and fold, on the graphs of the fold, which it never saw. "
      "Columns "
      "hold other graphs: a fold with low scores has hard graphs or spoiled ones, which this "
      "cannot tell "
      "apart. Down a column only runs differ.",
      variant.metric);
  figure.table = {"folds" + variant.file_end, {"seed", "fold", "member", "graphs", "mean"}, {}};
  HeatMap map{.label = "Out-of-fold score by seed and fold",
              .row_name = "seed",
              .column_name = "fold",
              .rows = {},
              .columns = {},
              .values = {}};
  int folds = 0;
  for (const RunRecord& run : variant.runs) {
    folds = std::max(folds, run.folds);
    const std::string name = seed_name(run, run.first_member);
    if (std::ranges::find(map.rows, name) == map.rows.end()) map.rows.push_back(name);
  }
  for (const auto& [place, score] : scores) {
    if (std::ranges::find(map.rows, place.first) == map.rows.end()) map.rows.push_back(place.first);
    figure.table.rows.push_back({place.first, TableCell::count(place.second),
                                 TableCell::count(score.member), TableCell::count(score.graphs),
                                 TableCell(score.score)});
  }
  for (int fold = 0; fold < folds; ++fold) map.columns.push_back(std::to_string(fold));
  for (const std::string& row : map.rows) {
    map.values.emplace_back();
    for (int fold = 0; fold < folds; ++fold) {
      const auto at = scores.find({row, fold});
      map.values.back().push_back(at == scores.end() ? std::nan("") : at->second.score);
    }
  }
  figure.panels = {{"", [map](double width) { return map.svg(width); }}};
  return figure;
}

}  // namespace

ReportSection folds_section(const ReportInput& input) {
  return variant_section(input, {.id = "folds", .title = "Seeds and folds"},
                         "No out-of-fold scores: members hold folds out with ensemble.folds, and "
                         "predictions.rows scores the graphs that they never saw.",
                         [](const ReportedVariant& variant, ReportSection& section) {
                           add_figure(section, figure_of(variant));
                         });
}

}  // namespace tpudist
