#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/means.hpp"
#include "results/report/charts/charts.hpp"
#include "results/report/sections.hpp"

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
      std::vector<double> own;
      for (const GraphResult& graph : run.scores->graphs) {
        if (member.fold >= 0 && graph.fold == member.fold && graph.held_out[m] &&
            !std::isnan(graph.members[m]))
          own.push_back(graph.members[m]);
      }
      if (!own.empty())
        scores[{seed_name(run, member.number), member.fold}] = {
            member.number, static_cast<int>(own.size()), mean(own)};
    }
  }
  return scores;
}

HeatMap map_of(const ReportedVariant& variant,
               const std::map<std::pair<std::string, int>, FoldScore>& scores) {
  HeatMap map{
      .label = "Out-of-fold score by seed and fold", .row_name = "seed", .column_name = "fold"};
  int folds = 0;
  for (const RunRecord& run : variant.runs) {
    folds = std::max(folds, run.folds);
    const std::string name = seed_name(run, run.first_member);
    if (std::ranges::find(map.rows, name) == map.rows.end()) map.rows.push_back(name);
  }
  for (const auto& [place, score] : scores) {
    if (std::ranges::find(map.rows, place.first) == map.rows.end()) map.rows.push_back(place.first);
  }
  for (int fold = 0; fold < folds; ++fold) map.columns.push_back(std::to_string(fold));
  for (const std::string& row : map.rows) {
    map.values.emplace_back();
    for (int fold = 0; fold < folds; ++fold) {
      const auto at = scores.find({row, fold});
      map.values.back().push_back(at == scores.end() ? std::nan("") : at->second.score);
    }
  }
  return map;
}

ReportFigure folds_figure(const VariantGroup& group) {
  ReportFigure figure = group.figure("", "folds", {"seed", "fold", "member", "graphs", "mean"});
  figure.sentence = fmt::format(
      "Mean {} of the member of each seed and fold, on the graphs of the fold, which it never saw. "
      "Columns hold other graphs: a fold with low scores has hard graphs or spoiled ones, which "
      "this "
      "cannot tell apart. Down a column only trainings differ.{}",
      group.metric(), group.several() ? " The shades of all variants are those of one scale." : "");
  figure.stacked = true;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  std::vector<std::pair<const ReportedVariant*, HeatMap>> maps;
  for (const ReportedVariant* variant : group.variants) {
    const auto scores = fold_scores(*variant);
    for (const auto& [place, score] : scores) {
      low = std::min(low, score.score), high = std::max(high, score.score);
      group.add_row(figure, *variant,
                    {place.first, TableCell::count(place.second), TableCell::count(score.member),
                     TableCell::count(score.graphs), score.score});
    }
    if (!scores.empty()) maps.emplace_back(variant, map_of(*variant, scores));
  }
  for (auto& [variant, map] : maps) {
    map.low = low, map.high = high;
    figure.panels.push_back({group.several() ? variant->runs.front().variant : "",
                             [map = map](double width) { return map.svg(width); }});
  }
  return figure;
}

}  // namespace

ReportSection folds_section(const ReportInput& input) {
  return group_section(
      input, {.id = "folds", .title = "Seeds and folds"},
      [](const VariantGroup& group, ReportSection& section) {
        ReportFigure figure = folds_figure(group);
        const bool any = !figure.table.rows.empty();
        add_missing(
            section, group,
            [&](const ReportedVariant& variant) {
              return any && !variant.out_of_fold.graphs.empty();
            },
            "No out-of-fold scores: members hold folds out with ensemble.folds, and "
            "predictions.rows scores the graphs that they never saw.");
        if (any) section.gist = "the score of each seed on each fold";
        add_figure(section, std::move(figure));
      });
}

}  // namespace tpudist
