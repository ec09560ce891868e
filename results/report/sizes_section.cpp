#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/report/charts/charts.hpp"
#include "results/report/sections.hpp"

namespace tpudist {
namespace {

ReportFigure sizes_figure(const VariantGroup& group) {
  ReportFigure figure =
      group.figure("", "ensemble-sizes", {"members", "subsets", "mean", "deviation"});
  LineChart chart{
      .label = "Score by number of members", .x_name = "members", .y_name = group.metric()};
  int least = 0, most = 0, graphs = 0;
  for (const ReportedVariant* variant : group.variants) {
    const VariantRankings& rankings = variant->rankings;
    if (rankings.sizes.empty()) continue;
    least = least == 0 ? rankings.sized_members : std::min(least, rankings.sized_members);
    most = std::max(most, rankings.sized_members), graphs = std::max(graphs, rankings.sized_graphs);
    LineChart::Series line{
        .name = about(*variant, "mean over subsets"), .colour = variant->colour, .strong = true};
    LineChart::Band band{.colour = variant->colour};
    for (const EnsembleSizes::Size& size : rankings.sizes) {
      line.x.push_back(size.members);
      line.y.push_back(size.mean);
      group.add_row(figure, *variant,
                    {TableCell::count(size.members), TableCell::count(size.subsets), size.mean,
                     size.deviation});
      if (std::isnan(size.deviation)) continue;
      band.x.push_back(size.members);
      band.low.push_back(size.mean - size.deviation);
      band.high.push_back(size.mean + size.deviation);
    }
    chart.lines.push_back(std::move(line));
    if (band.x.size() > 1) chart.bands.push_back(std::move(band));
  }
  figure.sentence = fmt::format(
      "Mean {} over {} validation graphs of ensembles of K of all {} members, of all trainings, "
      "drawn at random. The band is one standard deviation between ensembles that share no member: "
      "the deviation between subsets divided by sqrt(1 - K / M), up to K = M / 2. It is of these "
      "graphs and these members alone; beyond its end subsets share too many members to tell.",
      group.metric(), graphs,
      least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most));
  figure.legend = group.colours("s");
  if (!group.several()) figure.legend.push_back({"s1 strong", "mean over subsets"});
  if (!chart.bands.empty())
    figure.legend.push_back({group.several() ? "band0" : "band1", "one standard deviation"});
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

}  // namespace

ReportSection sizes_section(const ReportInput& input) {
  return group_section(
      input, {.id = "sizes", .title = "Size of the ensemble"},
      [](const VariantGroup& group, ReportSection& section) {
        for (const ReportedVariant* variant : group.variants) {
          const auto& sizes = variant->rankings.sizes;
          if (sizes.empty()) continue;
          section.gist +=
              fmt::format("{}{}", section.gist.empty() ? "" : "; ",
                          about(*variant, fmt::format("{:.4f} with one member, {:.4f} with all {}",
                                                      sizes.front().mean, sizes.back().mean,
                                                      sizes.back().members)));
        }
        add_missing(
            section, group,
            [](const ReportedVariant& variant) { return !variant.rankings.sizes.empty(); },
            "Needs the predictions of two members on validation graphs that neither "
            "trained on (predictions.rows writes them).");
        add_figure(section, sizes_figure(group));
      });
}

}  // namespace tpudist
