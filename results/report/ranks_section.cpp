#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "core/numbers.hpp"
#include "results/report/charts/charts.hpp"
#include "results/report/sections.hpp"

namespace tpudist {
namespace {

// Validation graphs with a score, by descending score; graphs in folds if there are none.
std::vector<const RankedGraph*> ordered(const VariantRankings& rankings) {
  std::vector<const RankedGraph*> graphs;
  for (const bool valid : {true, false}) {
    for (const RankedGraph& graph : rankings.graphs) {
      if ((graph.split == "valid") == valid && !std::isnan(graph.score)) graphs.push_back(&graph);
    }
    if (!graphs.empty()) break;
  }
  std::ranges::stable_sort(graphs, std::greater(),
                           [](const RankedGraph* graph) { return graph->score; });
  return graphs;
}

// `first`: whether to add the sentence.
ReportFigure figure_of(const ReportedVariant& variant,
                       const std::vector<const RankedGraph*>& graphs, bool first) {
  ReportFigure figure;
  figure.heading = variant.title;
  const std::string which =
      fmt::format("The best, the median and the worst of {} by {}",
                  counted(std::ssize(graphs),
                          graphs.front()->split == "valid" ? "validation graph" : "held-out graph"),
                  variant.metric);
  figure.sentence =
      first ? which +
                  ": one dot for each configuration (at most 400 of a graph), its measured rank "
                  "across, its rank by the members of all trainings together upwards, as shares of "
                  "all rows. On the dashed line both are equal; the fastest configurations are at "
                  "the lower left. Ranks do not say how much time a mistake costs."
            : "";
  figure.table = {{"graph", "measured rank", "predicted rank"}, {}, "ranks" + variant.file_end};
  const std::set<std::size_t> places{0, (graphs.size() - 1) / 2, graphs.size() - 1};
  for (const std::size_t place : places) {
    const RankedGraph& graph = *graphs[place];
    ScatterChart chart{.label = "Predicted against measured rank of " + graph.name,
                       .x_name = "measured rank",
                       .y_name = "predicted rank",
                       .colour = variant.colour,
                       .x = graph.measured,
                       .y = graph.predicted};
    for (std::size_t i = 0; i < graph.measured.size(); ++i)
      figure.table.rows.push_back({graph.name, graph.measured[i], graph.predicted[i]});
    figure.panels.push_back({fmt::format("{}: {:.3f}", graph.name, graph.score),
                             [chart](double width) { return chart.svg(width); }});
  }
  return figure;
}

}  // namespace

ReportSection ranks_section(const ReportInput& input) {
  return group_section(
      input, {.id = "ranks", .title = "Predicted against measured rank"},
      [](const VariantGroup& group, ReportSection& section) {
        for (const ReportedVariant* variant : group.variants) {
          const std::vector<const RankedGraph*> graphs = ordered(variant->rankings);
          if (!graphs.empty())
            section.figures.push_back(figure_of(*variant, graphs, section.figures.empty()));
        }
        if (!section.figures.empty()) section.gist = "of the best, the median and the worst graph";
        add_missing(
            section, group,
            [](const ReportedVariant& variant) { return !ordered(variant.rankings).empty(); },
            "No predictions of graphs that members never saw; predictions.rows writes them.");
      });
}

}  // namespace tpudist
