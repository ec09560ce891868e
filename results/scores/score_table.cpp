#include "results/scores/score_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/json.hpp"
#include "core/means.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "core/text_table.hpp"
#include "data/schema/collection.hpp"
#include "statistics/ranking/metrics.hpp"

namespace tpudist {
namespace {

using Values = std::span<const double>;

template <int most>
double slowdown(Values scores, Values targets) {
  return slowdown_at(scores, targets, most);
}

// Layout collections have all columns but the first.
constexpr ScoreColumn kColumns[] = {
    {"tile_score", &GraphMetrics::tile_score, tile_score},
    {"kendall_tau", &GraphMetrics::kendall_tau, kendall_tau_b},
    {"opa", &GraphMetrics::opa, ordered_pair_accuracy},
    {"slowdown_1", &GraphMetrics::slowdown_1, slowdown<1>},
    {"slowdown_5", &GraphMetrics::slowdown_5, slowdown<5>},
    {"slowdown_10", &GraphMetrics::slowdown_10, slowdown<10>},
    {"slowdown_100", &GraphMetrics::slowdown_100, slowdown<100>},
};

bool is_slowdown(const ScoreColumn& column) {
  return column.name.starts_with("slowdown");
}

TableCell cell(const ScoreColumn& column, double value) {
  return is_slowdown(column) ? TableCell(100 * value, "{:.2f}%") : value;
}

nlohmann::json values_json(const GraphMetrics& scores, bool is_tile) {
  nlohmann::json json;
  for (const ScoreColumn& column : score_columns(is_tile))
    json[std::string(column.name)] = finite_or_null(scores.*column.value);
  return json;
}

std::string score_text(double score) {
  return std::isnan(score) ? "undefined" : fmt::format("{:.4f}", score);
}

}  // namespace

std::span<const ScoreColumn> score_columns(bool is_tile) {
  return std::span(kColumns).subspan(is_tile ? 0 : 1);
}

const ScoreColumn& primary_metric(std::string_view collection) {
  return score_columns(Collection{std::string(collection)}.is_tile()).front();
}

double primary_score(const GraphMetrics& scores, bool is_tile) {
  return scores.*score_columns(is_tile).front().value;
}

GraphMetrics score_graph(std::span<const double> scores, std::span<const double> targets,
                         bool is_tile) {
  GraphMetrics result;
  result.configs = static_cast<std::int64_t>(scores.size());
  for (const ScoreColumn& column : score_columns(is_tile))
    result.*column.value = column.of(scores, targets);
  return result;
}

MeanScores mean_scores_of(std::span<const GraphMetrics> graphs, bool is_tile) {
  MeanScores result;
  result.mean.name = "mean";
  for (const GraphMetrics& graph : graphs) result.mean.configs += graph.configs;
  for (const ScoreColumn& column : score_columns(is_tile)) {
    double sum = 0;
    std::int64_t undefined = 0;
    for (const GraphMetrics& graph : graphs) {
      const double value = graph.*column.value;
      if (std::isnan(value))
        ++undefined;
      else
        sum += value;
    }
    const auto defined = static_cast<std::int64_t>(graphs.size()) - undefined;
    if (defined > 0) result.mean.*column.value = sum / static_cast<double>(defined);
    result.undefined.push_back(undefined);
  }
  return result;
}

std::vector<GraphMetrics> means_of_collections(std::span<const GraphMetrics> graphs, bool is_tile) {
  std::map<std::string_view, std::vector<GraphMetrics>> by_collection;
  for (const GraphMetrics& graph : graphs)
    by_collection[collection_of_id(graph.name)].push_back(graph);
  std::vector<GraphMetrics> means;
  if (by_collection.size() < 2) return means;
  for (const auto& [collection, own] : by_collection) {
    means.push_back(mean_scores_of(own, is_tile).mean);
    means.back().name = collection;
  }
  return means;
}

GraphMetrics mean_of_collections(std::span<const GraphMetrics> means, bool is_tile) {
  GraphMetrics of_all{.name = std::string(kMeanOfCollections)};
  for (const GraphMetrics& mean : means) of_all.configs += mean.configs;
  for (const ScoreColumn& column : score_columns(is_tile)) {
    double& value = of_all.*column.value = 0;
    for (const GraphMetrics& mean : means)
      value += mean.*column.value / static_cast<double>(means.size());
  }
  return of_all;
}

std::string score_table_text(std::span<const GraphMetrics> graphs, bool is_tile) {
  const auto columns = score_columns(is_tile);
  const MeanScores means = mean_scores_of(graphs, is_tile);
  const std::vector<GraphMetrics> of_collections = means_of_collections(graphs, is_tile);
  TextTable table({"graph", right("configs", 9)});
  for (const ScoreColumn& column : columns) table.columns.push_back(right(column.name, 12));
  const auto add_line = [&](const GraphMetrics& scores) {
    auto& row = table.rows.emplace_back(std::vector<TableCell>{scores.name, scores.configs});
    for (const ScoreColumn& column : columns) row.push_back(cell(column, scores.*column.value));
  };
  for (const GraphMetrics& graph : graphs) add_line(graph);
  for (const GraphMetrics& mean : of_collections) add_line(mean);
  if (!of_collections.empty()) add_line(mean_of_collections(of_collections, is_tile));
  add_line(means.mean);

  std::string text = table.to_text();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (means.undefined[i] == 0) continue;
    text += fmt::format("{} is undefined for {} of {}, which its mean leaves out\n",
                        columns[i].name, means.undefined[i], counted(std::ssize(graphs), "graph"));
  }
  return text;
}

nlohmann::json score_table_json(std::span<const GraphMetrics> graphs, bool is_tile) {
  const auto columns = score_columns(is_tile);
  const MeanScores means = mean_scores_of(graphs, is_tile);
  nlohmann::json json;
  json["primary"] = columns.front().name;
  json["mean"] = values_json(means.mean, is_tile);
  json["undefined"] = nlohmann::json::object();
  for (std::size_t i = 0; i < columns.size(); ++i)
    json["undefined"][std::string(columns[i].name)] = means.undefined[i];
  const std::vector<GraphMetrics> of_collections = means_of_collections(graphs, is_tile);
  for (const GraphMetrics& mean : of_collections)
    json["collections"][mean.name] = values_json(mean, is_tile);
  if (!of_collections.empty())
    json["mean_of_collections"] =
        values_json(mean_of_collections(of_collections, is_tile), is_tile);
  json["graphs"] = nlohmann::json::array();
  for (const GraphMetrics& graph : graphs) {
    nlohmann::json entry = values_json(graph, is_tile);
    entry["name"] = graph.name;
    entry["configs"] = graph.configs;
    json["graphs"].push_back(std::move(entry));
  }
  return json;
}

double final_score(std::span<const CollectionScore> scores) {
  double sum = 0;
  for (const CollectionScore& score : scores) sum += score.score;
  return scores.empty() ? kNone : sum / static_cast<double>(scores.size());
}

std::string collection_scores_text(std::span<const CollectionScore> scores) {
  std::vector<std::string> texts;
  for (const CollectionScore& score : scores)
    texts.push_back(fmt::format("{} {}", score.collection, score_text(score.score)));
  return join(texts, ", ");
}

std::string final_score_text(std::span<const CollectionScore> scores) {
  std::vector<std::string> missing;
  for (const std::string& name : Collection::tpugraphs_names()) {
    if (std::ranges::find(scores, name, &CollectionScore::collection) == scores.end())
      missing.push_back(name);
  }
  std::string text =
      fmt::format("final score {}, members together: mean of {} collections, {}",
                  score_text(final_score(scores)), scores.size(), collection_scores_text(scores));
  if (!missing.empty()) text += fmt::format(" (without {})", join(missing, ", "));
  return text + "\n";
}

}  // namespace tpudist
