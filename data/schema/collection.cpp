#include "data/schema/collection.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"

namespace tpudist {

bool Collection::is_tile() const {
  return name.starts_with("tile:");
}

std::filesystem::path Collection::folder() const {
  std::filesystem::path folder;
  for (const std::string& piece : split(name, ':')) folder /= piece;
  return folder;
}

Collection Collection::parse(std::string_view name) {
  const auto& names = all_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return {std::string(name)};
  const std::string nearest = nearest_of(name, names);
  throw ConfigError(fmt::format("unknown collection '{}'{}; the collections are {}", name,
                                nearest.empty() ? "" : ", did you mean '" + nearest + "'?",
                                join(names, ", ")));
}

const std::vector<std::string>& Collection::all_names() {
  static const std::vector<std::string> names = {"tile:xla", "layout:xla:default",
                                                 "layout:xla:random", "layout:nlp:default",
                                                 "layout:nlp:random"};
  return names;
}

}  // namespace tpudist
