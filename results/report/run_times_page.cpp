#include "results/report/run_times_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/means.hpp"
#include "core/numbers.hpp"
#include "data/shards/entropy_filter.hpp"
#include "data/shards/shard_reader.hpp"
#include "results/report/charts/charts.hpp"
#include "results/report/page.hpp"
#include "statistics/ranking/metrics.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kMostGraphs = 20, kMostFiltered = 5000, kMostKept = 2000;
constexpr int kKeptColour = 1, kFilteredColour = 2;

const std::vector<ReportFigure::LegendEntry> kLegend = {{"f1", "kept"}, {"f2", "filtered"}};

// A graph's run times in ms, and the rows that the filter keeps and removes.
struct FilteredGraph {
  const CheckedCollection::Graph* checked;
  GraphEntry entry;
  std::vector<double> times;
  std::vector<std::size_t> kept = {}, filtered = {};

  double share() const {
    return static_cast<double>(filtered.size()) / static_cast<double>(times.size());
  }
};

FilteredGraph filtered_graph(const CheckedCollection::Graph& checked, GraphEntry entry,
                             double threshold) {
  const RunTimes measured = GraphReader(entry).read_run_times();
  FilteredGraph graph{&checked, std::move(entry), {}};
  const std::vector<bool> kept = kept_by_entropy(measured.runtime, threshold);
  for (std::size_t row = 0; row < kept.size(); ++row) {
    graph.times.push_back(static_cast<double>(measured.runtime[row]) / 1e6);
    (kept[row] ? graph.kept : graph.filtered).push_back(row);
  }
  return graph;
}

std::vector<double> of_rows(const std::vector<double>& values,
                            const std::vector<std::size_t>& rows) {
  std::vector<double> some;
  for (const std::size_t row : rows) some.push_back(values[row]);
  return some;
}

// All rows, or `most` of them at equal distances.
std::vector<std::size_t> even_sample(const std::vector<std::size_t>& rows, std::size_t most) {
  if (rows.size() <= most) return rows;
  std::vector<std::size_t> sample;
  for (std::size_t i = 0; i < most; ++i) sample.push_back(rows[i * rows.size() / most]);
  return sample;
}

// The quantiles 0.05, 0.25, 0.5, 0.75 and 0.95, each one of the values; NaN without values.
std::array<double, 5> spread_of(std::vector<double> values) {
  std::array<double, 5> spread = {kNone, kNone, kNone, kNone, kNone};
  std::ranges::sort(values);
  const double last = static_cast<double>(values.size()) - 1;
  std::ranges::transform(std::array{0.05, 0.25, 0.5, 0.75, 0.95}, spread.begin(), [&](double q) {
    return values.empty() ? kNone : values[static_cast<std::size_t>(std::lround(q * last))];
  });
  return spread;
}

ReportFigure spread_figure(const std::vector<FilteredGraph>& graphs, std::size_t drawn,
                           std::size_t number) {
  ReportFigure figure;
  figure.heading = "Spread of the run times";
  figure.sentence =
      "Run times as multiples of the graph's fastest one: the median, the middle half (heavy) and "
      "the middle nine tenths (thin) of the rows that the filter keeps and of those that it "
      "removes.";
  figure.legend = kLegend;
  figure.table = {{"graph", "split", "measurements", "filtered", "kept: 5 % (ms)", "median", "95 %",
                   "filtered: 5 % (ms)", "median", "95 %"},
                  {},
                  fmt::format("run-times-{}", number)};
  IntervalChart chart{.label = "Spread of run times",
                      .x_name = "run time / that of the fastest row"};
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const FilteredGraph& graph = graphs[g];
    std::vector<TableCell> cells = {graph.entry.name, graph.entry.split,
                                    TableCell::count(graph.entry.configs),
                                    TableCell::count(std::ssize(graph.filtered))};
    const double fastest = std::ranges::min(graph.times);
    for (const bool kept : {true, false}) {
      const auto spread = spread_of(of_rows(graph.times, kept ? graph.kept : graph.filtered));
      for (const std::size_t q : {0, 2, 4}) cells.emplace_back(spread[q]);
      if (g >= drawn || std::isnan(spread[0])) continue;
      chart.rows.push_back({.label = fmt::format("{} ({}), {}", graph.entry.name, graph.entry.split,
                                                 kept ? "kept" : "filtered"),
                            .value = spread[2] / fastest,
                            .colour = kept ? kKeptColour : kFilteredColour,
                            .interval = ChartInterval{spread[1] / fastest, spread[3] / fastest},
                            .wider = ChartInterval{spread[0] / fastest, spread[4] / fastest}});
    }
    figure.table.rows.push_back(std::move(cells));
  }
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

// Run times (vertical) against one number per row. Filtered rows are drawn over kept rows.
LineChart chart_of(const FilteredGraph& graph, const std::string& x_name,
                   const std::vector<double>& x) {
  const auto [low, high] = std::ranges::minmax(graph.times);
  LineChart chart{.label = fmt::format("Run times of {} by {}", graph.entry.name, x_name),
                  .x_name = x_name,
                  .y_name = "run time (ms)",
                  .log_y = high > 20 * low};
  const auto add = [&](const std::vector<std::size_t>& rows, int colour) {
    chart.lines.push_back({.name = "",
                           .colour = colour,
                           .points = true,
                           .x = of_rows(x, rows),
                           .y = of_rows(graph.times, rows)});
  };
  add(even_sample(graph.kept, kMostKept), kKeptColour);
  add(even_sample(graph.filtered, kMostFiltered), kFilteredColour);
  return chart;
}

LineChart order_chart(const FilteredGraph& graph) {
  std::vector<double> order(graph.times.size());
  std::iota(order.begin(), order.end(), 0.0);
  LineChart chart = chart_of(graph, "row, in the order of measurement", order);
  const auto [low, high] = std::ranges::minmax(graph.times);
  for (std::size_t i = 0; i < graph.filtered.size();) {
    const std::size_t first = graph.filtered[i];
    std::size_t end = first;
    while (i < graph.filtered.size() && graph.filtered[i] == end) ++end, ++i;
    chart.bands.push_back({.colour = kFilteredColour,
                           .x = {static_cast<double>(first), static_cast<double>(end)},
                           .low = {low, low},
                           .high = {high, high}});
  }
  return chart;
}

std::string tau_text(const std::vector<double>& ratios, const std::vector<double>& times) {
  const double tau = kendall_tau_b(ratios, times);
  return std::isnan(tau) ? "-" : fmt::format("{:.3f}", tau);
}

ReportFigure graph_figure(const FilteredGraph& graph) {
  ReportFigure figure;
  figure.heading = fmt::format("{} ({})", graph.entry.name, graph.entry.split);
  const auto drawn = [](const std::vector<std::size_t>& rows, std::size_t most) {
    return fmt::format("{} of {}", std::min(rows.size(), most), rows.size());
  };
  figure.sentence = fmt::format("Drawn, evenly over the file: {} kept rows, {} filtered ones.",
                                drawn(graph.kept, kMostKept), drawn(graph.filtered, kMostFiltered));
  figure.legend = kLegend;
  figure.stacked = true;
  for (const MeasurementCheck& check : graph.checked->suspicions)
    figure.remarks.push_back("Suspect: " + describe(check));
  const auto add = [&](const std::string& caption, const LineChart& chart) {
    figure.panels.push_back({caption, [chart](double width) { return chart.svg(width); }});
  };
  add("", order_chart(graph));
  const std::vector<double> ratios = output_violations(graph.entry);
  if (ratios.empty()) {
    figure.remarks.push_back("No violation ratio: no node has an order of known dimensions.");
    return figure;
  }
  add(fmt::format("Violation ratio of the outputs: Kendall tau with the run time {}, of the kept "
                  "rows {}",
                  tau_text(ratios, graph.times),
                  tau_text(of_rows(ratios, graph.kept), of_rows(graph.times, graph.kept))),
      chart_of(graph, "violation ratio", ratios));
  return figure;
}

ReportSection section_of(const CheckedCollection& checked, const std::filesystem::path& shards,
                         std::size_t number) {
  ReportSection section{.id = fmt::format("collection-{}", number),
                        .title = checked.collection.name};
  std::vector<FilteredGraph> graphs;
  std::int64_t rows = 0, filtered = 0;
  std::vector<GraphEntry> entries = list_graphs(shards, checked.collection);
  for (std::size_t g = 0; g < checked.graphs.size(); ++g) {
    const CheckedCollection::Graph& graph = checked.graphs[g];
    if (!graph.has_times || graph.measurements == 0) continue;
    graphs.push_back(filtered_graph(graph, std::move(entries.at(g)), checked.least_entropy));
    rows += graph.measurements;
    filtered += graph.filtered;
  }
  if (graphs.empty()) {
    section.missing.push_back("No graph has run times.");
    return section;
  }
  std::ranges::stable_sort(graphs, std::greater(), [](const FilteredGraph& graph) {
    return std::pair(!graph.checked->suspicions.empty(), graph.share());
  });
  const std::size_t drawn = std::min(graphs.size(), kMostGraphs);
  section.notes.push_back(
      fmt::format("data.entropy_filter={} would remove {} of {}. Drawn: {} of {} with run "
                  "times, suspects first, then those of which it removes most; the table has all.",
                  checked.least_entropy, format_count(filtered), counted(rows, "measurement"),
                  drawn, counted(std::ssize(graphs), "graph")));
  section.figures.push_back(spread_figure(graphs, drawn, number));
  for (std::size_t g = 0; g < drawn; ++g) section.figures.push_back(graph_figure(graphs[g]));
  return section;
}

}  // namespace

std::string run_times_html(const std::filesystem::path& shards,
                           std::span<const CheckedCollection> collections) {
  std::vector<ReportSection> sections;
  for (const CheckedCollection& checked : collections)
    sections.push_back(section_of(checked, shards, sections.size() + 1));
  return page_html("Run times and the entropy filter", shards.string(), {}, sections,
                   "inspect --suspects");
}

}  // namespace tpudist
