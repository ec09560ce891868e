#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "core/config/yaml_tree.hpp"
#include "core/text.hpp"

namespace tpudist {

// How values of a configuration are written as YAML, in flow style, and described in messages.

// An integer, or no value for the word `auto`.
struct AutoOrInteger {
  std::optional<std::int64_t> value;
  bool operator==(const AutoOrInteger&) const = default;
};

std::string to_yaml(std::int64_t value);
std::string to_yaml(double value);
std::string to_yaml(bool value);
std::string to_yaml(const std::string& value);
std::string to_yaml(const AutoOrInteger& value);
std::string to_yaml(const YamlValue& value);

template <typename T>
std::string to_yaml(const std::vector<T>& values) {
  std::vector<std::string> pieces;
  for (const T& value : values) pieces.push_back(to_yaml(value));
  return fmt::format("[{}]", join(pieces, ", "));
}

// Describes a value for a message: `is "ten"`, `is a list`.
std::string describe(const YamlValue& value);

// "between 1 and 64", "at least 1", "at most 64"; empty without limits.
template <typename T>
std::string describe(const Limits<T>& limits) {
  const bool low = limits.min != std::numeric_limits<T>::lowest();
  const bool high = limits.max != std::numeric_limits<T>::max();
  if (low && high)
    return fmt::format("between {} and {}", to_yaml(limits.min), to_yaml(limits.max));
  if (low) return "at least " + to_yaml(limits.min);
  if (high) return "at most " + to_yaml(limits.max);
  return {};
}

// The default limits do not exclude infinity.
template <typename T>
bool within(T value, const Limits<T>& limits) {
  return (value >= limits.min || limits.min == std::numeric_limits<T>::lowest()) &&
         (value <= limits.max || limits.max == std::numeric_limits<T>::max());
}

}  // namespace tpudist
