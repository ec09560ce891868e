#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/means.hpp"

// null stands for no value.
template <typename T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(auto& json, const std::optional<T>& value) {
    json = nullptr;
    if (value) json = *value;
  }
  static void from_json(const auto& json, std::optional<T>& value) {
    value.reset();
    if (!json.is_null()) json.get_to(value.emplace());
  }
};

namespace tpudist {

// The message of an nlohmann::json exception, shortened to fit in one line. Drops its number, the
// bytes that were read last (they may be anything), and all after 120 bytes.
// "[json.exception.parse_error.101] parse error at line 2, column 5: syntax error while ..."
// becomes "parse error at line 2, column 5".
std::string json_fault(std::string_view what);

// No format of this project nests nearly as deep as this. nlohmann::json writes and copies values
// recursively, so deeper text must not become a value.
inline constexpr std::size_t kDeepestJson = 64;
// The deepest nesting of brackets in a JSON text. Brackets in strings do not count.
std::size_t json_depth(std::string_view text);

// `json` as text, with `indent` spaces per level; -1: on one line. Bytes that are not UTF-8, as in
// a folder's name, become U+FFFD.
template <typename Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// JSON has neither NaN nor infinity; null stands for them.
inline nlohmann::json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}
inline double number_or_nan(const nlohmann::json& json) {
  return json.get<std::optional<double>>().value_or(kNone);
}

// Throws std::invalid_argument, or what nlohmann::json throws, for another type.
template <typename Json, typename T>
void read_value(const Json& json, T& to) {
  if constexpr (std::is_same_v<T, double>) {
    to = number_or_nan(json);
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const double value = json.template get<double>();
    if (!json.is_number_integer()) throw std::invalid_argument("is no whole number");
    json.get_to(to);
    if (static_cast<double>(to) != value) throw std::invalid_argument("is too large");
  } else {
    json.get_to(to);
  }
}
template <typename Json, typename T>
void read_value(const Json& json, std::vector<T>& to) {
  if (!json.is_array()) throw std::invalid_argument("is no list");
  to.clear();
  for (const Json& element : json) {
    T value{};
    read_value(element, value);
    to.push_back(std::move(value));
  }
}

// Reads the field `key` of an object. Integers must have no decimal point. A double reads null as
// NaN. Throws std::invalid_argument with the key if the field is missing or of another type.
template <typename Json, typename T>
void read_field(const Json& object, const char* key, T& to) {
  if (!object.contains(key)) throw std::invalid_argument(fmt::format("it has no \"{}\"", key));
  try {
    read_value(object.at(key), to);
  } catch (const std::exception& error) {
    throw std::invalid_argument(fmt::format("{}: {}", key, json_fault(error.what())));
  }
}

// Defines to_json and from_json of a plain type whose fields are named like their keys. Use it in
// the type's namespace, in a source file.
#define TPUDIST_JSON_FIELDS(Type, ...)                                              \
  void to_json(nlohmann::json& nlohmann_json_j, const Type& nlohmann_json_t) {      \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_TO, __VA_ARGS__))        \
  }                                                                                 \
  void from_json(const nlohmann::json& nlohmann_json_j, Type& nlohmann_json_t) {    \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(TPUDIST_JSON_FIELD_FROM, __VA_ARGS__)) \
  }
#define TPUDIST_JSON_FIELD_FROM(field) \
  tpudist::read_field(nlohmann_json_j, #field, nlohmann_json_t.field);

// Calls `from` with the content of a file of this "format". Throws IoError, and DataError "PATH:
// damaged: WHAT; ADVICE" for other content or when `from` throws.
void read_json_file(const std::filesystem::path& path, std::string_view format,
                    std::string_view advice,
                    const std::function<void(const nlohmann::json&)>& from);

}  // namespace tpudist
