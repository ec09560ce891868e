#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "results/report/charts/charts.hpp"
#include "results/report/sections.hpp"
#include "results/scores/slowdowns.hpp"

namespace tpudist {
namespace {

// [kSlowdownCounts] Mean over the graphs of a kind, in percent; empty if there are none.
std::vector<double> mean_slowdowns(const ReportedVariant& variant, bool valid) {
  std::vector<double> mean(std::size(kSlowdownCounts), 0.0);
  double graphs = 0;
  for (const RankedGraph& graph : variant.rankings.graphs) {
    if ((graph.split == "valid") != valid || std::isnan(graph.slowdown.front())) continue;
    for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += 100 * graph.slowdown[k];
    ++graphs;
  }
  if (graphs == 0) return {};
  for (double& value : mean) value /= graphs;
  return mean;
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

// The mean slowdown at kTops with its interval.
std::string interval_remark(const ReportedVariant& variant, bool valid) {
  std::vector<GraphSlowdowns> graphs;
  for (const RankedGraph& graph : variant.rankings.graphs) {
    if ((graph.split == "valid") != valid) continue;
    SlowdownsAtTops tops;
    for (std::size_t top = 0; top < kTops.size(); ++top) {
      const auto at = std::ranges::find(kSlowdownCounts, kTops[top]);
      tops[top] = graph.slowdown[static_cast<std::size_t>(at - std::begin(kSlowdownCounts))];
    }
    graphs.push_back(graph_slowdowns(graph, tops));
  }
  std::string text;
  for (std::size_t top = 0; top < kTops.size(); ++top) {
    const MeanSlowdown found = mean_slowdown(graphs, top);
    if (!std::isnan(found.mean))
      text +=
          fmt::format("{}k = {}: {}", text.empty() ? "" : ", ", kTops[top], slowdown_text(found));
  }
  if (text.empty()) return {};
  return about(variant, "mean slowdown (95 %: this model on other families): " + text + ".");
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
  std::vector<double> counts;
  for (const std::int64_t count : kSlowdownCounts) {
    figure.table.columns.push_back(fmt::format("k = {} [%]", count));
    counts.push_back(static_cast<double>(count));
  }
  for (const ReportedVariant* variant : group.variants) {
    for (const RankedGraph& graph : variant->rankings.graphs) {
      if ((graph.split == "valid") != valid || std::isnan(graph.slowdown.front())) continue;
      LineChart::Series line{.name = graph.name, .colour = variant->colour, .x = counts};
      TextTable::Row row{graph.name, TableCell::count(graph.members)};
      for (const double slowdown : graph.slowdown) {
        line.y.push_back(100 * slowdown);
        row.emplace_back(100 * slowdown, "{:.3f}");
      }
      group.add_row(figure, *variant, std::move(row));
      if (!group.several()) chart.lines.push_back(std::move(line));
    }
    std::vector<double> mean = mean_slowdowns(*variant, valid);
    if (mean.empty()) continue;
    if (std::string remark = interval_remark(*variant, valid); !remark.empty())
      figure.remarks.push_back(std::move(remark));
    chart.lines.push_back({.name = about(*variant, "mean over graphs"),
                           .colour = variant->colour,
                           .strong = true,
                           .x = counts,
                           .y = std::move(mean)});
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
        constexpr std::size_t kTen = 3;  // place of k = 10
        for (const ReportedVariant* variant : group.variants) {
          const std::vector<double> valid = mean_slowdowns(*variant, true);
          if (valid.empty()) continue;
          section.gist += fmt::format("{}{}", section.gist.empty() ? "best of 10: " : "; ",
                                      about(*variant, fmt::format("{:.1f} % slower", valid[kTen])));
        }
        add_missing(
            section, group,
            [](const ReportedVariant& variant) {
              return !mean_slowdowns(variant, true).empty() ||
                     !mean_slowdowns(variant, false).empty();
            },
            "No predictions of graphs that members never saw; predictions.rows writes them.");
        for (const bool valid : {true, false}) add_figure(section, figure_of(group, valid));
      });
}

}  // namespace tpudist
