#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "results/scores/system_scores.hpp"
#include "statistics/intervals/comparison.hpp"

namespace tpudist {

// The score of one system: a title that names the graphs, the two intervals as lines, and what is
// left out. "no scores" if there are none.
std::string system_text(const SystemScores& system);
nlohmann::json system_json(const SystemScores& system, double level = kIntervalLevel);

// Which of two systems is better, by how much and how certain, in one line.
std::string verdict_text(const Comparison& comparison);

// The output of `tpudist compare` for two systems, which must have graphs. The answer to `--margin`
// and the verdict come first.
std::string comparison_text(const SystemPair& pair, const Comparison& comparison);
nlohmann::json comparison_json(const SystemPair& pair, const Comparison& comparison);

// The output of `tpudist compare --difference`.
std::string plan_text(const DifferencePlan& plan);
nlohmann::json plan_json(const DifferencePlan& plan);

}  // namespace tpudist
