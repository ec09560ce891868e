#include "data/schema/collection.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

bool is_part(std::string_view part) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  return !part.empty() && std::ranges::all_of(part, allowed);
}

}  // namespace

bool Collection::is_tile() const {
  return name.starts_with("tile:");
}

std::filesystem::path Collection::folder() const {
  std::filesystem::path folder;
  for (const std::string& piece : split(name, ':')) folder /= piece;
  return folder;
}

bool Collection::is_name(std::string_view name) {
  const std::vector<std::string> parts = split(name, ':');
  const std::size_t expected = parts.front() == "layout" ? 3 : parts.front() == "tile" ? 2 : 0;
  return parts.size() == expected && std::ranges::all_of(parts, is_part);
}

Collection Collection::parse(std::string_view name) {
  if (is_name(name)) return {std::string(name)};
  throw ConfigError(fmt::format(
      "'{}' is not a collection; collections are layout:X:Y and tile:X, with X and Y made of "
      "letters, digits, '_' and '-', such as {}{}",
      name, join(tpugraphs_names(), ", "), did_you_mean(name, tpugraphs_names())));
}

bool Collection::is_tpugraphs() const {
  return std::ranges::find(tpugraphs_names(), name) != tpugraphs_names().end();
}

const std::vector<std::string>& Collection::tpugraphs_names() {
  static const std::vector<std::string> names = {"tile:xla", "layout:xla:default",
                                                 "layout:xla:random", "layout:nlp:default",
                                                 "layout:nlp:random"};
  return names;
}

}  // namespace tpudist
