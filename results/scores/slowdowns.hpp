#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/means.hpp"
#include "results/scores/run_record.hpp"
#include "statistics/intervals/interval.hpp"

namespace tpudist {

inline constexpr std::array<std::int64_t, 4> kTops{1, 5, 10, 100};

// How much slower than the fastest configuration of a graph the best of the first k is, at kTops: 0.02
// is 2 %. NaN without run times.
using SlowdownsAtTops = std::array<double, kTops.size()>;
struct GraphSlowdowns {
  std::string name, family;
  SlowdownsAtTops at{kNone, kNone, kNone, kNone};
};
// Of a scored graph. NaN where the first k are all of its rows: their best is the fastest.
GraphSlowdowns graph_slowdowns(const PredictionEntry& graph, const SlowdownsAtTops& at);

// The mean over graphs, and its 95 % interval on other families (family_variance, kin as one), of
// these rankings alone. Of graphs with a defined value. Slowdowns are skewed: the interval holds in
// 80 % for 5 families and 90 % for 24, and else is mostly too low (bench/statistics_calibration
// slowdowns). `difference`: values may be below 0.
struct MeanSlowdown {
  double mean = kNone;
  std::optional<Interval> families;  // nothing for fewer than two families
};
MeanSlowdown mean_slowdown(std::span<const GraphSlowdowns> graphs, std::size_t top,
                           bool difference = false);

// "0.43 % (0.00 to 1.20)"; "-" without a value.
std::string slowdown_text(const MeanSlowdown& slowdown);

// Lines: a heading, and a row of kTops for each name with its graphs; several collections also have
// a row each. Empty if no graph has a value.
struct NamedSlowdowns {
  std::string name;
  std::vector<GraphSlowdowns> graphs;
  bool difference = false;  // as in mean_slowdown
};
std::string slowdown_table(const std::vector<NamedSlowdowns>& rows);
// {"1": interval, "5": ...}; for several collections also {"collections": {NAME: {"1": ...}}}.
nlohmann::json slowdown_json(std::span<const GraphSlowdowns> graphs, bool difference = false);

// Of the combined ranking of a training's members that never saw the graph, the mean over trainings:
// of the validation split, or of the graphs in folds outside of it. Empty if a run has no predictions.
// Throws as JoinedPredictions.
std::vector<GraphSlowdowns> together_slowdowns(std::span<const RunRecord> runs, bool valid);

// The output of `tpudist compare`: A, B and the difference on the graphs that both rank.
struct SlowdownPair {
  std::vector<GraphSlowdowns> a, b, difference;  // of the same graphs
  std::string missing;                           // why there are none; else empty
  std::string text() const;
  nlohmann::json json() const;
};
// Predictions that cannot be joined are `missing`.
SlowdownPair compare_slowdowns(std::span<const RunRecord> a, std::span<const RunRecord> b,
                               bool valid);

}  // namespace tpudist
