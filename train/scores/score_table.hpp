#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// How well the configurations of one graph were ranked (statistics/metrics.hpp). NaN where a
// metric is undefined: a constant side, or no run times.
struct GraphMetrics {
  static constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

  std::string name;          // of the graph
  std::int64_t configs = 0;  // configurations that were ranked
  double kendall_tau = kUndefined;
  double opa = kUndefined;
  double slowdown_1 = kUndefined, slowdown_5 = kUndefined, slowdown_10 = kUndefined,
         slowdown_100 = kUndefined;
  double tile_score = kUndefined;  // tile graphs only
};

// A metric, and so a column of a table: its name in print and JSON, where its value lies, and how a
// ranking (lower is faster) gets it. NaN where it is undefined.
struct ScoreColumn {
  std::string_view name;
  double GraphMetrics::*value;
  double (*of)(std::span<const double> scores, std::span<const double> targets);
};

// The columns of a collection, the primary metric of the competition first: Kendall tau for layout,
// the tile score for tile.
std::span<const ScoreColumn> score_columns(bool is_tile);
double primary_score(const GraphMetrics& scores, bool is_tile);

// The primary metric of the collection of this name.
const ScoreColumn& primary_metric(std::string_view collection);

// Scores of one graph; `name` is left empty. Lower scores mean faster. Throws as
// statistics/metrics.hpp.
GraphMetrics score_graph(std::span<const double> scores, std::span<const double> targets,
                         bool is_tile);

// Means over graphs. A graph where a metric is NaN is left out of that metric's mean, and counted.
struct MeanScores {
  GraphMetrics mean;                    // configs: the sum; name: "mean"
  std::vector<std::int64_t> undefined;  // graphs left out, one for each of score_columns
};
MeanScores mean_scores_of(std::span<const GraphMetrics> graphs, bool is_tile);

// An aligned table: a line for each graph in the given order, then the mean, then a note on
// undefined values where there are any. Slowdowns in percent. Ends with a newline.
std::string score_table_text(std::span<const GraphMetrics> graphs, bool is_tile);

// {"primary": "kendall_tau", "mean": {...}, "undefined": {...}, "graphs": [{"name", "configs",
// ...}]}; undefined values are null, slowdowns are ratios.
nlohmann::json score_table_json(std::span<const GraphMetrics> graphs, bool is_tile);

}  // namespace tpudist
