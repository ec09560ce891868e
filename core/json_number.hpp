#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/means.hpp"

namespace tpudist {

// `json` as text, indented by that many spaces, -1 on one line. Bytes that are not UTF-8, as a folder's
// name may have, become U+FFFD.
template <typename Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Numbers in JSON. JSON has neither NaN nor infinity; null stands for them and for a missing
// number.
inline nlohmann::json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}
inline nlohmann::json number_or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}
inline std::optional<double> number_from(const nlohmann::json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}
inline double number_or_nan(const nlohmann::json& json) {
  return number_from(json).value_or(kNone);
}

}  // namespace tpudist
