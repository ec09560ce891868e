#include "results/scores/slowdowns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/text_table.hpp"
#include "data/schema/collection.hpp"
#include "data/schema/model_family.hpp"
#include "results/scores/joined_predictions.hpp"
#include "results/scores/member_columns.hpp"
#include "results/scores/table_intervals.hpp"
#include "statistics/intervals/family_variance.hpp"
#include "statistics/ranking/metrics.hpp"

namespace tpudist {
namespace {

// The graphs of each collection, if there are several.
std::map<std::string, std::vector<GraphSlowdowns>> graphs_by_collection(
    std::span<const GraphSlowdowns> graphs) {
  std::map<std::string, std::vector<GraphSlowdowns>> all;
  for (const GraphSlowdowns& graph : graphs)
    all[std::string(collection_of_id(graph.name))].push_back(graph);
  if (all.size() < 2) all.clear();
  return all;
}

}  // namespace

GraphSlowdowns graph_slowdowns(const PredictionEntry& graph, const SlowdownsAtTops& at) {
  GraphSlowdowns own{graph.name, model_family(graph.name), at};
  for (std::size_t top = 0; top < kTops.size(); ++top) {
    if (kTops[top] >= graph.rows) own.at[top] = kNone;
  }
  return own;
}

MeanSlowdown mean_slowdown(std::span<const GraphSlowdowns> graphs, std::size_t top,
                           bool difference) {
  std::vector<std::string> families;
  GraphValues known;
  for (const GraphSlowdowns& graph : graphs) {
    if (std::isnan(graph.at[top])) continue;
    families.push_back(graph.family);
    known.values.push_back(graph.at[top]);
  }
  known.families = family_clusters(families).of;
  MeanSlowdown result{mean(known.values), {}};
  std::ranges::sort(families = known.families);
  if (std::ranges::unique(families).begin() - families.begin() < 2) return result;
  Reach reach;
  if (!difference) reach.low = 0;
  result.families = t_interval(result.mean, family_variance({&known, 1}), kIntervalLevel, reach);
  return result;
}

std::string slowdown_text(const MeanSlowdown& slowdown) {
  if (std::isnan(slowdown.mean)) return "-";
  std::string text = fmt::format("{:.2f} %", 100 * slowdown.mean);
  if (slowdown.families && slowdown.families->is_known())
    text += fmt::format(" ({:.2f} to {:.2f})", 100 * slowdown.families->low,
                        100 * slowdown.families->high);
  return text;
}

std::string slowdown_table(const std::vector<NamedSlowdowns>& rows) {
  TextTable table({""});
  for (const std::int64_t top : kTops) table.columns.push_back(right(fmt::format("top {}", top)));
  bool any = false;
  const auto add = [&](const std::string& name, std::span<const GraphSlowdowns> graphs,
                       bool difference) {
    auto& row = table.rows.emplace_back(std::vector<TableCell>{name});
    for (std::size_t top = 0; top < kTops.size(); ++top) {
      const MeanSlowdown found = mean_slowdown(graphs, top, difference);
      any = any || !std::isnan(found.mean);
      row.emplace_back(slowdown_text(found));
    }
  };
  for (const auto& [name, graphs, difference] : rows) {
    for (const auto& [collection, own] : graphs_by_collection(graphs))
      add(name == "mean" ? collection : name + " " + collection, own, difference);
    add(name, graphs, difference);
  }
  if (!any) return {};
  return "how much slower than the fastest the best of the first k is, members combined (95 %: "
         "this "
         "model on other families; too narrow for few)\n" +
         table.to_text(2);
}

nlohmann::json slowdown_json(std::span<const GraphSlowdowns> graphs, bool difference) {
  nlohmann::json json;
  for (std::size_t top = 0; top < kTops.size(); ++top) {
    const MeanSlowdown found = mean_slowdown(graphs, top, difference);
    json[std::to_string(kTops[top])] = {{"mean", finite_or_null(found.mean)},
                                        {"other_families", interval_json(found.families)}};
  }
  for (const auto& [collection, own] : graphs_by_collection(graphs))
    json["collections"][collection] = slowdown_json(own, difference);
  return json;
}

std::vector<GraphSlowdowns> together_slowdowns(std::span<const RunRecord> runs, bool valid) {
  std::vector<std::shared_ptr<const PredictionsFile>> files;
  for (const RunRecord& run : runs) {
    if (!run.predictions) return {};
    files.push_back(run.predictions);
  }
  if (files.empty()) return {};
  const JoinedPredictions joined(std::move(files));
  const PredictionsHeader& header = joined.header();
  const Combination combination = header.combination.value_or(Combination{});
  const std::vector<int> trainings = trainings_of(header);
  std::vector<GraphSlowdowns> all;
  for (std::size_t g = 0; g < header.graphs.size(); ++g) {
    const PredictionEntry& entry = header.graphs[g];
    if (entry.split == "test" || (entry.split == "valid" && entry.fold < 0) != valid) continue;
    const PredictionRows rows = joined.read(static_cast<int>(g));
    const std::vector<double> held_out = held_out_weights(entry, rows);
    std::map<int, std::vector<double>> by_training;  // weights of its members
    for (std::size_t m = 0; m < held_out.size(); ++m) {
      if (held_out[m] == 0) continue;
      auto& own = by_training[trainings[static_cast<std::size_t>(header.members[m].run)]];
      own.resize(held_out.size());
      own[m] = held_out[m];
    }
    if (by_training.empty()) continue;
    SlowdownsAtTops mean{};
    for (const auto& [training, weights] : by_training) {
      const std::vector<double> combined = combine_scored(rows.scores, combination, weights);
      for (std::size_t top = 0; top < kTops.size(); ++top)
        mean[top] += slowdown_at(combined, rows.targets(), kTops[top]) /
                     static_cast<double>(by_training.size());
    }
    all.push_back(graph_slowdowns(entry, mean));
  }
  return all;
}

SlowdownPair compare_slowdowns(std::span<const RunRecord> a, std::span<const RunRecord> b,
                               bool valid) {
  SlowdownPair pair;
  std::vector<GraphSlowdowns> one, other;
  try {
    one = together_slowdowns(a, valid);
    other = together_slowdowns(b, valid);
  } catch (const Error& error) {
    pair.missing = error.what();
  }
  for (const GraphSlowdowns& own : one) {
    const auto found = std::ranges::find(other, own.name, &GraphSlowdowns::name);
    if (found == other.end()) continue;
    pair.a.push_back(own);
    pair.b.push_back(*found);
    pair.difference.push_back(own);
    for (std::size_t top = 0; top < kTops.size(); ++top)
      pair.difference.back().at[top] -= found->at[top];
  }
  if (pair.a.empty() && pair.missing.empty())
    pair.missing = "both sides need predictions of the same graphs (predictions.rows)";
  return pair;
}

std::string SlowdownPair::text() const {
  if (!missing.empty()) return fmt::format("no slowdowns: {}\n", missing);
  return slowdown_table({{"A", a}, {"B", b}, {"A - B", difference, true}});
}

nlohmann::json SlowdownPair::json() const {
  if (!missing.empty()) return {{"missing", missing}};
  return {{"a", slowdown_json(a)},
          {"b", slowdown_json(b)},
          {"difference", slowdown_json(difference, true)}};
}

}  // namespace tpudist
