#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace tpudist {

// A score as JSON; null for no score.
inline nlohmann::json number_or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

inline std::optional<double> number_from(const nlohmann::json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

}  // namespace tpudist
