#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "report/charts/line_chart.hpp"
#include "report/sections.hpp"
#include "report/variant_section.hpp"

namespace tpudist {
namespace {

ReportFigure figure_of(const ReportedVariant& variant, bool valid) {
  ReportFigure figure;
  figure.heading = fmt::format("{}{}{}", valid ? "Validation graphs" : "Graphs out of fold",
                               variant.title.empty() ? "" : ": ", variant.title);
  figure.sentence =
      "How much slower than the fastest measured configuration the best of the k is that all "
      "members "
      "together rank first: 0 % where it is among them. One thin line for each graph, the heavy "
      "one is their "
      "mean. Best of the measured ones, not of all that the compiler could choose.";
  figure.legend = {{"s1 thin", "graphs"}, {"s1 strong", "their mean"}};
  figure.table = {(valid ? "slowdown-valid" : "slowdown-out-of-fold") + variant.file_end,
                  {"graph", "members"},
                  {}};
  for (const std::int64_t count : kSlowdownCounts)
    figure.table.columns.push_back(fmt::format("k = {} [%]", count));
  LineChart chart{.label = "Slowdown of the best of k",
                  .x_name = "k, configurations that are tried",
                  .y_name = "slowdown [%]",
                  .log_x = true,
                  .zero = true};
  LineSeries mean{.name = "mean", .colour = 1, .strong = true, .x = {}, .y = {}};
  for (const std::int64_t count : kSlowdownCounts) mean.x.push_back(static_cast<double>(count));
  mean.y.assign(std::size(kSlowdownCounts), 0.0);
  double graphs = 0;
  for (const RankedGraph& graph : variant.rankings.graphs) {
    if ((graph.split == "valid") != valid || std::isnan(graph.slowdown.front())) continue;
    LineSeries line{.name = graph.name, .colour = 1, .strong = false, .x = mean.x, .y = {}};
    std::vector<TableCell> row{graph.name, TableCell::count(graph.members)};
    for (std::size_t k = 0; k < graph.slowdown.size(); ++k) {
      line.y.push_back(100 * graph.slowdown[k]);
      mean.y[k] += 100 * graph.slowdown[k];
      row.emplace_back(100 * graph.slowdown[k], 3);
    }
    figure.table.rows.push_back(std::move(row));
    chart.lines.push_back(std::move(line));
    ++graphs;
  }
  for (double& value : mean.y) value /= graphs;
  chart.lines.push_back(std::move(mean));
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

}  // namespace

ReportSection slowdown_section(const ReportInput& input) {
  return variant_section(
      input, {.id = "slowdown", .title = "Slowdown at k"},
      "No predictions of graphs that members never saw; predictions.rows writes them.",
      [](const ReportedVariant& variant, ReportSection& section) {
        for (const bool valid : {true, false}) add_figure(section, figure_of(variant, valid));
      });
}

}  // namespace tpudist
