#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "results/scores/result_set.hpp"

namespace tpudist {

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
