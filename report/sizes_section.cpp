#include <fmt/format.h>

#include <cmath>

#include "report/charts/line_chart.hpp"
#include "report/sections.hpp"
#include "report/variant_section.hpp"

namespace tpudist {
namespace {

ReportFigure figure_of(const ReportedVariant& variant) {
  const VariantRankings& rankings = variant.rankings;
  ReportFigure figure;
  figure.heading = variant.title;
  figure.sentence = fmt::format(
      "Mean {} over {} validation graphs of ensembles of K of the {} members, drawn at random. The "
      "band is one "
      "standard deviation between ensembles that share no member: the deviation between subsets "
      "divided by "
      "sqrt(1 - K/{}), up to K = {}. It is of these graphs and these members alone; beyond its end "
      "subsets "
      "share too many members to tell.",
      variant.metric, rankings.sized_graphs, rankings.sized_members, rankings.sized_members,
      rankings.sized_members / 2);
  figure.legend = {{"s1 strong", "mean over subsets"}, {"band1", "one standard deviation"}};
  figure.table = {
      "ensemble-sizes" + variant.file_end, {"members", "subsets", "mean", "deviation"}, {}};
  LineChart chart{
      .label = "Score by number of members", .x_name = "members", .y_name = variant.metric};
  LineSeries line{.name = "mean over subsets", .colour = 1, .strong = true, .x = {}, .y = {}};
  LineBand band;
  for (const EnsembleSize& size : rankings.sizes) {
    line.x.push_back(size.members);
    line.y.push_back(size.mean);
    figure.table.rows.push_back({TableCell::count(size.members), TableCell::count(size.subsets),
                                 TableCell(size.mean), TableCell(size.deviation)});
    if (std::isnan(size.deviation)) continue;
    band.x.push_back(size.members);
    band.low.push_back(size.mean - size.deviation);
    band.high.push_back(size.mean + size.deviation);
  }
  chart.lines = {line};
  chart.bands = {band};
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

}  // namespace

ReportSection sizes_section(const ReportInput& input) {
  return variant_section(
      input, {.id = "sizes", .title = "Size of the ensemble"},
      "Needs the predictions of two members on validation graphs that neither trained on "
      "(predictions.rows writes them).",
      [](const ReportedVariant& variant, ReportSection& section) {
        if (!variant.rankings.sizes.empty()) section.figures.push_back(figure_of(variant));
      });
}

}  // namespace tpudist
