#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "core/error.hpp"
#include "core/means.hpp"
#include "core/numbers.hpp"
#include "data/schema/collection.hpp"
#include "data/shards/shard_reader.hpp"
#include "results/inspect/suspect_graphs.hpp"
#include "results/report/charts/charts.hpp"
#include "results/report/sections.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kCells = 150, kMostStrips = 12;

// Mean rank, as a share, of the measurements of each of at most kCells stretches of the order.
std::vector<double> rank_strip(const GraphEntry& entry) {
  const RunTimes times = GraphReader(entry).read_run_times();
  std::vector<std::size_t> order(static_cast<std::size_t>(times.configs()));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, {}, [&](std::size_t i) { return times.target(static_cast<std::int64_t>(i)); });
  std::vector<double> rank(order.size());
  for (std::size_t place = 0; place < order.size(); ++place)
    rank[order[place]] = static_cast<double>(place) /
                         static_cast<double>(std::max<std::size_t>(1, order.size() - 1));
  const std::size_t cells = std::min(kCells, rank.size());
  std::vector<double> strip;
  for (std::size_t c = 0; c < cells; ++c) {
    const std::size_t from = c * rank.size() / cells, to = (c + 1) * rank.size() / cells;
    strip.push_back(mean(std::span(rank).subspan(from, to - from)));
  }
  return strip;
}

StripChart::Strip strip_of(const CheckedCollection::Graph& graph, const GraphEntry& entry) {
  const MeasurementCheck& check = graph.suspicions.front();
  const auto rows = static_cast<double>(std::max<std::int64_t>(1, graph.measurements));
  return {.label = fmt::format("{} ({}): {}", graph.name, graph.split, name_of(check.kind)),
          .values = rank_strip(entry),
          .marked_from = static_cast<double>(check.first_row) / rows,
          .marked_to = static_cast<double>(check.last_row + 1) / rows};
}

ReportFigure figure_of(const CheckedCollection& checked, const std::filesystem::path& shards,
                       const std::string& file_end) {
  ReportFigure figure;
  figure.heading = checked.collection.name;
  figure.sentence = fmt::format(
      "Graphs whose run times look corrupted by their order and their repetitions alone, {} of {}: "
      "from left to right the measurements in the order of the files, darker is slower (mean rank "
      "of a stretch). The frame is where the first reason shows. No model takes part in it, and a "
      "suspect may be sound.",
      std::ranges::count_if(
          checked.graphs,
          [](const CheckedCollection::Graph& graph) { return !graph.suspicions.empty(); }),
      checked.graphs.size());
  figure.table = {{"graph", "split", "measurements", "evidence"}, {}, "suspects" + file_end};
  StripChart chart{.label = "Run times by order of measurement", .x_name = "order of measurement"};
  std::map<std::pair<std::string, std::string>, GraphEntry> entries;
  for (GraphEntry& entry : list_graphs(shards, checked.collection)) {
    const std::pair key(entry.split, entry.name);
    entries.emplace(key, std::move(entry));
  }
  for (const CheckedCollection::Graph& graph : checked.graphs) {
    if (graph.suspicions.empty()) continue;
    for (const MeasurementCheck& check : graph.suspicions) {
      figure.table.rows.push_back(
          {graph.name, graph.split, TableCell::count(graph.measurements), describe(check)});
    }
    if (chart.strips.size() < kMostStrips)
      chart.strips.push_back(strip_of(graph, entries.at({graph.split, graph.name})));
  }
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

}  // namespace

ReportSection suspects_section(const ReportInput& input) {
  ReportSection section{.id = "suspects", .title = "Suspected measurements"};
  std::set<std::pair<std::string, std::string>> seen;
  ThreadPool pool(1);
  for (const ReportedVariant& variant : input.variants) {
    for (const RunRecord& run : variant.runs) {
      const std::string shards = run.text("data.shards");
      for (const Collection& collection : parts_of({run.collection})) {
        if (shards.empty() || !seen.insert({shards, collection.name}).second) continue;
        try {
          const CheckedCollection checked =
              check_collection(shards, collection, std::nullopt, pool);
          ReportFigure figure =
              figure_of(checked, shards, seen.size() > 1 ? fmt::format("-{}", seen.size()) : "");
          if (figure.table.rows.empty()) {
            section.notes.push_back(
                fmt::format("None of {} of {} looks corrupted by its run times alone.",
                            counted(std::ssize(checked.graphs), "graph"), collection.name));
          } else {
            section.figures.push_back(std::move(figure));
          }
        } catch (const Error& error) {
          section.missing.push_back(
              fmt::format("{}: run times were not checked: {}", collection.name, error.what()));
        }
      }
    }
  }
  if (section.notes.empty() && section.figures.empty() && section.missing.empty())
    section.missing.push_back("No run says where its data are (data.shards in config.yaml).");
  return section;
}

}  // namespace tpudist
