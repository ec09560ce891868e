#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "report/charts/interval_chart.hpp"
#include "report/sections.hpp"
#include "report/variant_section.hpp"
#include "results/system_scores.hpp"
#include "statistics/variance_components.hpp"

namespace tpudist {
namespace {

ReportFigure figure_of(const ReportedVariant& variant, const ScoreMatrix& matrix) {
  const bool of_folds = matrix.kind == MatrixRows::out_of_fold;
  const VarianceComponents found = variance_components(run_scores(matrix));
  ReportFigure figure;
  figure.heading = fmt::format("{}{}{}", of_folds ? "Out of fold" : "Validation graphs",
                               variant.title.empty() ? "" : ": ", variant.title);
  figure.sentence = fmt::format(
      "Standard deviations of {} by what varies, with 90 % intervals (restricted maximum "
      "likelihood), from {} "
      "{} on {} graphs. {} The rest is what one training does on one graph. Noise of the "
      "measurements is no "
      "bar: it lowers every score, as the noise ceiling tells.",
      variant.metric, matrix.rows.size(), of_folds ? "seeds" : "members", matrix.graphs.size(),
      of_folds ? "Graphs are those of a fold, runs the trainings of one fold and seed: how hard a "
                 "fold is "
                 "cannot be told from its graphs."
               : "Members may differ by seed and by the fold that they leave out, which this "
                 "cannot tell "
                 "apart.");
  figure.table = {(of_folds ? "variance-out-of-fold" : "variance-valid") + variant.file_end,
                  {"what", "standard deviation", "low", "high"},
                  {}};
  IntervalChart chart{.label = "Standard deviations with intervals",
                      .x_name = "standard deviation",
                      .bars = true,
                      .rows = {}};
  const std::pair<std::string, DeviationInterval> parts[] = {
      {of_folds ? "graphs of a fold" : "graphs", found.graph},
      {of_folds ? "runs of a fold" : "members", found.run},
      {"rest", found.residual}};
  for (const auto& [name, part] : parts) {
    chart.rows.push_back({.label = name,
                          .value = part.deviation,
                          .colour = 1,
                          .interval = ChartInterval{part.low, part.high},
                          .title = fmt::format("{}: {:.4f}", name, part.deviation)});
    figure.table.rows.push_back(
        {name, TableCell(part.deviation), TableCell(part.low), TableCell(part.high)});
  }
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

// Whether two graphs were scored by the same trainings, without which graphs and runs cannot be told
// apart.
bool is_enough(const ScoreMatrix& matrix) {
  std::map<int, int> graphs;  // of each fold
  for (const MatrixGraph& graph : matrix.graphs) ++graphs[graph.fold];
  return matrix.rows.size() > 1 &&
         std::ranges::any_of(graphs, [](const auto& entry) { return entry.second > 1; });
}

}  // namespace

ReportSection variance_section(const ReportInput& input) {
  return variant_section(
      input, {.id = "variance", .title = "What scores vary by"},
      "Needs the scores of two members, or of two seeds over all folds, on two graphs.",
      [](const ReportedVariant& variant, ReportSection& section) {
        for (const ScoreMatrix* matrix : {&variant.members, &variant.out_of_fold}) {
          if (!is_enough(*matrix)) continue;
          try {
            section.figures.push_back(figure_of(variant, *matrix));
          } catch (const Error& error) {
            section.missing.push_back(error.what());
          }
        }
      });
}

}  // namespace tpudist
