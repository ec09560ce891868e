#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "statistics/score_intervals.hpp"

namespace tpudist {

// {"value", "error", "degrees", "low", "high"}; null without an interval.
nlohmann::json interval_json(const std::optional<Interval>& interval);

// The same with "families", "graphs", "collections", "runs", "family_variance", "run_variance",
// "bootstrap".
nlohmann::json family_interval_json(const std::optional<FamilyInterval>& found);

}  // namespace tpudist
