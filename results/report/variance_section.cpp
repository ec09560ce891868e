#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "results/report/charts/charts.hpp"
#include "results/report/sections.hpp"
#include "results/scores/system_scores.hpp"
#include "statistics/intervals/variance_components.hpp"

namespace tpudist {
namespace {

// Scores by trainings if there are several, else by members or columns of the only training.
struct Spread {
  RunScoreTable scores;
  bool trainings = false;
};

Spread spread_of(const ReportedVariant& variant, bool of_folds) {
  const RunScoreTable& trainings = of_folds ? variant.out_of_fold : variant.valid;
  if (trainings.run_count() > 1) return {trainings, true};
  return {of_folds ? variant.out_of_fold : variant.members, false};
}

// Whether the same trainings scored two graphs, which separates the effects of graphs and runs.
bool is_enough(const RunScoreTable& scores) {
  std::map<int, int> graphs;  // of each fold
  for (int g = 0; g < scores.graph_count(); ++g) ++graphs[scores.fold_of(g)];
  return scores.run_count() > 1 &&
         std::ranges::any_of(graphs, [](const auto& entry) { return entry.second > 1; });
}

// The figure of all variants of a collection that have enough scores.
ReportFigure figure_of(const VariantGroup& group, bool of_folds, ReportSection& section) {
  ReportFigure figure = group.figure(of_folds ? "Out of fold" : "Validation graphs",
                                     of_folds ? "variance-out-of-fold" : "variance-valid",
                                     {"what", "standard deviation", "low", "high"});
  IntervalChart chart{.label = "Standard deviations with intervals",
                      .x_name = "standard deviation of " + group.metric(),
                      .bars = true};
  bool trainings = false, members = false;
  for (const ReportedVariant* variant : group.variants) {
    const Spread spread = spread_of(*variant, of_folds);
    if (!is_enough(spread.scores)) continue;
    VarianceComponents found;
    try {
      found = variance_components(spread.scores);
    } catch (const Error& error) {
      section.missing.push_back(about(*variant, error.what()));
      continue;
    }
    (spread.trainings ? trainings : members) = true;
    const std::pair<std::string, VarianceComponents::Deviation> parts[] = {
        {of_folds ? "graphs of a fold" : "graphs", found.graph},
        {spread.trainings ? (of_folds ? "trainings of a fold" : "trainings")
                          : "members of one training",
         found.run},
        {"rest", found.residual}};
    for (const auto& [name, part] : parts) {
      chart.rows.push_back({.heading = &name == &parts[0].first ? variant->title : "",
                            .label = name,
                            .value = part.value,
                            .colour = variant->colour,
                            .interval = ChartInterval{part.low, part.high},
                            .text = fmt::format("{:.4f}", part.value),
                            .title = about(*variant, fmt::format("{}: {:.4f}", name, part.value))});
      group.add_row(figure, *variant, {name, part.value, part.low, part.high});
    }
  }
  figure.sentence = fmt::format(
      "Standard deviations of {} by what varies, with 90 % intervals, from mean squares. The rest "
      "is "
      "what one training does on one graph.{}{} Measurement noise is not drawn; it limits every "
      "score (see ceiling).",
      group.metric(), of_folds ? " How hard a fold is cannot be told from its graphs." : "",
      members
          ? " Members of one training share slates, so their spread says little of training again."
          : "");
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

}  // namespace

ReportSection variance_section(const ReportInput& input) {
  return group_section(
      input, {.id = "variance", .title = "What scores vary by"},
      [](const VariantGroup& group, ReportSection& section) {
        add_missing(
            section, group,
            [](const ReportedVariant& variant) {
              return is_enough(spread_of(variant, false).scores) ||
                     is_enough(spread_of(variant, true).scores);
            },
            "Needs the scores of two members, or of two seeds over all folds, on two graphs.");
        for (const bool of_folds : {false, true})
          add_figure(section, figure_of(group, of_folds, section));
      });
}

}  // namespace tpudist
