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

// The message of an nlohmann::json exception, shortened to fit in one line. Removed are its number,
// the bytes that were read last (they may be anything), and all after 120 bytes.
// "[json.exception.parse_error.101] parse error at line 2, column 5: syntax error while ..."
// becomes "parse error at line 2, column 5".
std::string json_fault(std::string_view what);

// Objects and lists of the formats of this project lie in each other far less deep than this. nlohmann::json
// writes and copies values recursively, so a text that is deeper must not become one.
inline constexpr std::size_t kDeepestJson = 64;
// How many brackets of a JSON text are open at once, at most; those in strings do not count.
std::size_t json_depth(std::string_view text);

// `json` as text, indented by that many spaces, -1 on one line. Bytes that are not UTF-8, as a folder's
// name may have, become U+FFFD.
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

// Reads the field `key` of an object. An integer has no point; null in place of a number with one is
// NaN. Throws std::invalid_argument, which names the key, where it is missing or of another type.
template <typename Json, typename T>
void read_field(const Json& object, const char* key, T& to) {
  if (!object.contains(key)) throw std::invalid_argument(fmt::format("it has no \"{}\"", key));
  const Json& field = object.at(key);
  try {
    if constexpr (std::is_same_v<T, double>) {
      to = number_or_nan(field);
    } else if constexpr (std::is_same_v<T, std::vector<double>>) {
      to.clear();
      for (const Json& value : field) to.push_back(number_or_nan(value));
    } else {
      if (std::is_integral_v<T> && field.is_number_float())
        throw std::invalid_argument("is no whole number");
      field.get_to(to);
    }
  } catch (const std::exception& error) {
    throw std::invalid_argument(fmt::format("{}: {}", key, json_fault(error.what())));
  }
}

// to_json and from_json of a plain type, whose fields have the names of their keys. In the type's
// namespace, in a source file.
#define TPUDIST_JSON_FIELDS(Type, ...)                                              \
  void to_json(nlohmann::json& nlohmann_json_j, const Type& nlohmann_json_t) {      \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_TO, __VA_ARGS__))        \
  }                                                                                 \
  void from_json(const nlohmann::json& nlohmann_json_j, Type& nlohmann_json_t) {    \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(TPUDIST_JSON_FIELD_FROM, __VA_ARGS__)) \
  }
#define TPUDIST_JSON_FIELD_FROM(field) \
  tpudist::read_field(nlohmann_json_j, #field, nlohmann_json_t.field);

// What `from` makes of a file that has this "format". Throws IoError, and DataError "PATH: damaged:
// WHAT; ADVICE" for any other content.
void read_json_file(const std::filesystem::path& path, std::string_view format,
                    std::string_view advice,
                    const std::function<void(const nlohmann::json&)>& from);

}  // namespace tpudist
