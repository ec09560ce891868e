#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/means.hpp"

namespace tpudist {

// Quality of the ranking of one graph (statistics/ranking/metrics.hpp). An undefined metric is NaN:
// all values equal on one side, or no run times.
struct GraphMetrics {
  std::string name;          // of the graph
  std::int64_t configs = 0;  // ranked configurations
  double kendall_tau = kNone;
  double opa = kNone;
  double slowdown_1 = kNone, slowdown_5 = kNone, slowdown_10 = kNone, slowdown_100 = kNone;
  double tile_score = kNone;  // tile graphs only
};

// A column of a table: its name in text and JSON, and its field.
struct ScoreColumn {
  std::string_view name;
  double GraphMetrics::*value;
  double (*of)(std::span<const double> scores, std::span<const double> targets);
};

// The columns of a collection, the competition's primary metric first: Kendall tau for layout, the
// tile score for tile.
std::span<const ScoreColumn> score_columns(bool is_tile);
double primary_score(const GraphMetrics& scores, bool is_tile);

// The primary metric of the collection of this name.
const ScoreColumn& primary_metric(std::string_view collection);

// The metrics of one graph, without `name`. Lower scores mean faster. Throws as
// statistics/ranking/metrics.hpp.
GraphMetrics score_graph(std::span<const double> scores, std::span<const double> targets,
                         bool is_tile);

// Means over graphs. If a metric is NaN for a graph, the metric's mean leaves the graph out, and
// `undefined` counts it.
struct MeanScores {
  GraphMetrics mean;                    // configs: the sum; name: "mean"
  std::vector<std::int64_t> undefined;  // graphs excluded, for each of score_columns
};
MeanScores mean_scores_of(std::span<const GraphMetrics> graphs, bool is_tile);

// If several collections were scored together: the mean over the graphs of each collection, sorted
// by its name. Else empty.
std::vector<GraphMetrics> means_of_collections(std::span<const GraphMetrics> graphs, bool is_tile);

// The mean of these means, at least one, and its name. A metric is undefined if one mean's is.
inline constexpr std::string_view kMeanOfCollections = "mean of collections";
GraphMetrics mean_of_collections(std::span<const GraphMetrics> means, bool is_tile);

// An aligned table: a line per graph in the given order, then means_of_collections and their mean,
// then the mean, then notes on undefined values. Slowdowns in percent. Ends with a newline.
std::string score_table_text(std::span<const GraphMetrics> graphs, bool is_tile);

// {"primary": "kendall_tau", "mean": {...}, "undefined": {...}, "graphs": [{"name", "configs",
// ...}]}, and for several collections "collections": {"layout:xla:default": {...}, ...} and
// "mean_of_collections": {...}. Undefined values are null, slowdowns are ratios.
nlohmann::json score_table_json(std::span<const GraphMetrics> graphs, bool is_tile);

// The score of one collection: the mean over its graphs of its primary metric.
struct CollectionScore {
  std::string collection;
  double score = 0;  // NaN if undefined
};

// The competition's final score: the mean over collections, with equal weights. NaN for no
// collection, or if any score is undefined.
double final_score(std::span<const CollectionScore> scores);

// "layout:xla:default 0.5000, layout:xla:random undefined"
std::string collection_scores_text(std::span<const CollectionScore> scores);

// One line with the final score and its collections. The line also names the missing ones of
// TpuGraphs' five: the competition's final score is the mean of all five. Ends with a newline.
std::string final_score_text(std::span<const CollectionScore> scores);

}  // namespace tpudist
