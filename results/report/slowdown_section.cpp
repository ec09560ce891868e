#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "results/report/charts/charts.hpp"
#include "results/report/sections.hpp"
#include "results/scores/slowdowns.hpp"

namespace tpudist {
namespace {

// The slowdowns of the graphs of a kind.
std::vector<GraphSlowdowns> slowdowns_of(const ReportedVariant& variant, bool valid) {
  std::vector<GraphSlowdowns> graphs;
  for (const RankedGraph& graph : variant.rankings.graphs) {
    if ((graph.split == "valid") == valid && !std::isnan(graph.slowdowns.at.front()))
      graphs.push_back(graph.slowdowns);
  }
  return graphs;
}

// Whether predictions hold every measured row of the graphs.
std::string rows_text(const VariantGroup& group) {
  std::int64_t most_rows = 0;
  for (const ReportedVariant* variant : group.variants) {
    for (const RunRecord& run : variant->runs) {
      if (run.predictions) most_rows = std::max(most_rows, run.predictions->header().most_rows);
    }
  }
  if (most_rows == 0)
    return "Over all measured configurations, not over all that the compiler could choose.";
  return fmt::format(
      "Within a sample of at most {} measured configurations of each graph (predictions.rows): the "
      "fastest of a graph may not be among them. predictions.rows=all takes all.",
      most_rows);
}

// A line over the k at which slowdowns are known.
LineChart::Series line_of(const SlowdownsAtTops& slowdowns, std::string name, int colour) {
  LineChart::Series line{.name = std::move(name), .colour = colour};
  for (std::size_t top = 0; top < kTops.size(); ++top) {
    if (std::isnan(slowdowns[top])) continue;
    line.x.push_back(static_cast<double>(kTops[top]));
    line.y.push_back(100 * slowdowns[top]);
  }
  return line;
}

ReportFigure figure_of(const VariantGroup& group, bool valid) {
  ReportFigure figure =
      group.figure(valid ? "Validation graphs" : "Graphs out of fold",
                   valid ? "slowdown-valid" : "slowdown-out-of-fold", {"graph", "members"});
  figure.sentence =
      "How much slower than the fastest configuration the best of the k is that the "
      "members of all trainings together rank first: 0 % where it is among them. " +
      rows_text(group);
  LineChart chart{.label = "Slowdown of the best of k",
                  .x_name = "k, configurations that are tried",
                  .y_name = "slowdown [%]",
                  .log_x = true,
                  .zero = true};
  for (const std::int64_t top : kTops)
    figure.table.columns.push_back(fmt::format("k = {} [%]", top));
  for (const ReportedVariant* variant : group.variants) {
    for (const RankedGraph& graph : variant->rankings.graphs) {
      const SlowdownsAtTops& at = graph.slowdowns.at;
      if ((graph.split == "valid") != valid || std::isnan(at.front())) continue;
      TextTable::Row row{graph.name, TableCell::count(graph.members)};
      for (const double slowdown : at) row.emplace_back(100 * slowdown, "{:.3f}");
      group.add_row(figure, *variant, std::move(row));
      if (!group.several()) chart.lines.push_back(line_of(at, graph.name, variant->colour));
    }
    const std::vector<GraphSlowdowns> graphs = slowdowns_of(*variant, valid);
    if (graphs.empty()) continue;
    SlowdownsAtTops means;
    std::string text;
    for (std::size_t top = 0; top < kTops.size(); ++top) {
      const MeanSlowdown found = mean_slowdown(graphs, top);
      means[top] = found.mean;
      if (!std::isnan(found.mean))
        text +=
            fmt::format("{}k = {}: {}", text.empty() ? "" : ", ", kTops[top], slowdown_text(found));
    }
    figure.remarks.push_back(
        about(*variant, "mean slowdown (95 %: this model on other families): " + text + "."));
    chart.lines.push_back(line_of(means, about(*variant, "mean over graphs"), variant->colour));
    chart.lines.back().strong = true;
  }
  figure.legend = group.colours("s");
  if (!group.several()) figure.legend = {{"s1 thin", "graphs"}, {"s1 strong", "their mean"}};
  if (group.several()) figure.sentence += " Lines are means over the graphs.";
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

}  // namespace

ReportSection slowdown_section(const ReportInput& input) {
  return group_section(
      input, {.id = "slowdown", .title = "Slowdown at k"},
      [](const VariantGroup& group, ReportSection& section) {
        for (const ReportedVariant* variant : group.variants) {
          const double ten = mean_slowdown(slowdowns_of(*variant, true), 2).mean;  // at kTops[2]
          if (std::isnan(ten)) continue;
          section.gist += fmt::format("{}{}", section.gist.empty() ? "best of 10: " : "; ",
                                      about(*variant, fmt::format("{:.1f} % slower", 100 * ten)));
        }
        add_missing(
            section, group,
            [](const ReportedVariant& variant) {
              return !slowdowns_of(variant, true).empty() || !slowdowns_of(variant, false).empty();
            },
            "No predictions of graphs that members never saw; predictions.rows writes them.");
        for (const bool valid : {true, false}) add_figure(section, figure_of(group, valid));
      });
}

}  // namespace tpudist
