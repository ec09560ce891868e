#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "results/scores/result_set.hpp"
#include "results/scores/system_scores.hpp"
#include "statistics/intervals/comparison.hpp"

namespace tpudist {

// The score of one system: a title that names the graphs, the two intervals as lines, and what is
// left out. "no scores" if there are none.
std::string system_text(const SystemScores& system);
nlohmann::json system_json(const SystemScores& system, double level = kIntervalLevel);

// The output of `tpudist compare` for two systems, which must have graphs. The answer to `--margin`
// and the verdict come first.
std::string comparison_text(const SystemPair& pair, const Comparison& comparison);
nlohmann::json comparison_json(const SystemPair& pair, const Comparison& comparison);

// The output of `tpudist compare --difference`.
std::string plan_text(const DifferencePlan& plan);
nlohmann::json plan_json(const DifferencePlan& plan);

// Which variants of a sweep differ, all pairs at once (all_pairs). Then the intervals of each
// variant: system_text of its runs in the newest stage, on validation graphs and out of fold, if
// there are scores. If the runs of a variant cannot be compared, a line says why.
std::string sweep_interval_text(const ResultSet& results);

// A list: {"variant", "valid": system_json, "out_of_fold": system_json}, with "error" for a variant
// whose runs cannot be compared.
nlohmann::json sweep_interval_json(const ResultSet& results);

// A list with an entry for each kind of graphs and experiment that has two variants with two
// trainings each: {"graphs", "method", "variants", "pairs": [{"a", "b", "interval", "p"}],
// "shrunk"}.
nlohmann::json sweep_pairs_json(const ResultSet& results);

}  // namespace tpudist
