#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "results/system_scores.hpp"
#include "statistics/comparison.hpp"

namespace tpudist {

// How sure the score of one system is: its two intervals as lines, with the title of its graphs,
// and what is left out. Says "no scores" where there are none.
std::string system_text(const SystemScores& system);
nlohmann::json system_json(const SystemScores& system);

// Which of two systems is better, by how much and how sure, in one sentence with its end of line.
std::string verdict_text(const Comparison& comparison);

// What `tpudist compare` prints of two systems, the verdict first; both have graphs.
std::string comparison_text(const SystemPair& pair, const Comparison& comparison);
nlohmann::json comparison_json(const SystemPair& pair, const Comparison& comparison);

// What `tpudist compare --difference` prints and writes.
std::string plan_text(const DifferencePlan& plan);
nlohmann::json plan_json(const DifferencePlan& plan);

}  // namespace tpudist
