#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "results/scores/result_set.hpp"

namespace tpudist {

// Which variants differ, all pairs at once (all_pairs), and the intervals of each variant of a
// sweep: system_text of its runs in the newest stage, on validation graphs and out of fold, if
// there are scores. A variant whose runs cannot be compared gets a line that says why.
std::string sweep_interval_text(const ResultSet& results);

// A list: {"variant", "valid": system_json, "out_of_fold": system_json}; with "error" if the text
// has such a line.
nlohmann::json sweep_interval_json(const ResultSet& results);

// A list with an entry for each kind of graphs and experiment that has two variants with two
// trainings each: {"graphs", "method", "variants", "pairs": [{"a", "b", "interval", "p"}],
// "shrunk"}.
nlohmann::json sweep_pairs_json(const ResultSet& results);

}  // namespace tpudist
