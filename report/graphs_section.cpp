#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "report/charts/interval_chart.hpp"
#include "report/score_summary.hpp"
#include "report/sections.hpp"
#include "report/variant_section.hpp"

namespace tpudist {
namespace {

// Null where the members together did not rank it.
const RankedGraph* ranked_graph(const ReportedVariant& variant, const MatrixGraph& graph) {
  for (const RankedGraph& ranked : variant.rankings.graphs) {
    if (ranked.name == graph.name && ranked.split == graph.split) return &ranked;
  }
  return nullptr;
}

// Puts what is known of all members together into the row of the chart, and gives the last cells of the
// table's.
std::vector<TableCell> add_together(IntervalRow& row, const RankedGraph* ranked) {
  const double none = std::nan("");
  if (!ranked) return {TableCell(none), TableCell(none), "", TableCell(none), TableCell(none)};
  if (std::isfinite(ranked->score)) row.second = ranked->score;
  const NoiseCeiling& ceiling = ranked->limits.ceiling;
  if (ceiling.value) {
    row.limit = *ceiling.value;
    row.limit_interval = ChartInterval{ceiling.low, ceiling.high};
  }
  return {
      TableCell(ranked->score), TableCell(ceiling.value.value_or(none)),
      ceiling.value ? fmt::format("{:.4f} to {:.4f}", ceiling.low, ceiling.high) : ceiling.reason,
      TableCell(ranked->limits.tied_share), TableCell(ranked->limits.sampling_deviation)};
}

ReportFigure figure_of(const ReportedVariant& variant, const ScoreMatrix& matrix) {
  const bool of_folds = matrix.kind == MatrixRows::out_of_fold;
  const std::string rows = of_folds ? "seeds" : "members";
  ReportFigure figure;
  figure.heading = fmt::format("{}{}{}", of_folds ? "Graphs out of fold" : "Validation graphs",
                               variant.title.empty() ? "" : ": ", variant.title);
  figure.sentence = fmt::format(
      "{} of each graph on {}: one small dot for each of {} {}, the large one is their mean with "
      "the 95 % "
      "interval over runs, the square is all members together{}. It shows which graphs are hard "
      "for these "
      "runs, not why.",
      variant.metric,
      matrix.most_rows > 0 ? fmt::format("at most {} rows", matrix.most_rows) : "all measured rows",
      matrix.rows.size(), rows,
      of_folds ? "; every score is by members that never saw the graph's family" : "");
  figure.legend = {{"f1", "mean with interval"}, {"q2", "members together"}};
  figure.table = {(of_folds ? "graphs-out-of-fold" : "graphs-valid") + variant.file_end,
                  {"graph", "family", "fold", "rows", "mean", "low", "high", "lowest", "highest",
                   "together", "ceiling", "ceiling interval", "tied pairs", "sampling deviation"},
                  {}};
  IntervalChart chart{.label = figure.heading, .x_name = variant.metric, .bars = false, .rows = {}};
  const std::vector<GraphSummary> summaries = summarise_graphs(matrix);
  for (std::size_t g = 0; g < matrix.graphs.size(); ++g) {
    const MatrixGraph& graph = matrix.graphs[g];
    IntervalRow row{
        .label = graph.name, .value = summaries[g].mean, .interval = summaries[g].interval};
    for (const auto& scores : matrix.scores) row.dots.push_back(scores[g]);
    row.title = fmt::format("{}: mean {:.4f}", graph.name, row.value);
    const auto [low, high] = std::ranges::minmax(row.dots);
    const double none = std::nan("");
    std::vector<TableCell> cells{graph.name,
                                 graph.family,
                                 graph.fold < 0 ? TableCell("") : TableCell::count(graph.fold),
                                 TableCell::count(graph.rows),
                                 TableCell(row.value),
                                 TableCell(row.interval ? row.interval->low : none),
                                 TableCell(row.interval ? row.interval->high : none),
                                 TableCell(low),
                                 TableCell(high)};
    std::ranges::move(add_together(row, ranked_graph(variant, graph)), std::back_inserter(cells));
    figure.table.rows.push_back(std::move(cells));
    chart.rows.push_back(std::move(row));
  }
  if (std::ranges::any_of(chart.rows, [](const IntervalRow& row) { return row.limit.has_value(); }))
    figure.legend.push_back({"limit", "noise ceiling with its interval"});
  std::ranges::stable_sort(chart.rows, std::greater(), &IntervalRow::value);
  constexpr std::size_t kMostRows = 40;
  if (chart.rows.size() > kMostRows) {
    figure.sentence +=
        fmt::format(" The {} best and the {} worst of {} graphs are drawn; the table has all.",
                    kMostRows / 2, kMostRows / 2, chart.rows.size());
    chart.rows.erase(chart.rows.begin() + kMostRows / 2, chart.rows.end() - kMostRows / 2);
  }
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

}  // namespace

ReportSection graphs_section(const ReportInput& input) {
  return variant_section(
      input, {.id = "graphs", .title = "Score of each graph"},
      "No scores of graphs yet; a run writes them when its steps are done (predictions.rows, or "
      "train.last_evaluation).",
      [](const ReportedVariant& variant, ReportSection& section) {
        for (const ScoreMatrix* matrix : {&variant.members, &variant.out_of_fold}) {
          if (!matrix->rows.empty()) section.figures.push_back(figure_of(variant, *matrix));
        }
      });
}

}  // namespace tpudist
