#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "results/scores/system_scores.hpp"
#include "statistics/intervals/comparison.hpp"

namespace tpudist {

// The score of one system: its two intervals as lines, with the title of its graphs, and what is
// left out. "no scores" if there are none.
std::string system_text(const SystemScores& system);
nlohmann::json system_json(const SystemScores& system, double level = kIntervalLevel);

// Which of two systems is better, by how much and how certain, in one line.
std::string verdict_text(const Comparison& comparison);

// The output of `tpudist compare` for two systems, the answer to `--margin` and the verdict first;
// both must have graphs.
std::string comparison_text(const SystemPair& pair, const Comparison& comparison);
nlohmann::json comparison_json(const SystemPair& pair, const Comparison& comparison);

// The output of `tpudist compare --difference`.
std::string plan_text(const DifferencePlan& plan);
nlohmann::json plan_json(const DifferencePlan& plan);

}  // namespace tpudist
