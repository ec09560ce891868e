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

// What `tpudist compare` prints of two systems; both have graphs.
std::string comparison_text(const SystemPair& pair, const Comparison& comparison);
nlohmann::json comparison_json(const SystemPair& pair, const Comparison& comparison);

}  // namespace tpudist
