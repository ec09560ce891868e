#include "data/schema/merged_collection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/text.hpp"

namespace tpudist {

Collection merged_collection(const std::vector<std::string>& names) {
  if (names.empty()) throw ConfigError("names no collection");
  for (const std::string& name : names) {
    if (Collection::parse(name).is_tile() != Collection{names.front()}.is_tile())
      throw ConfigError(fmt::format("{} and {}: layouts and tiles cannot be trained on together",
                                    names.front(), name));
    if (std::ranges::count(names, name) > 1) throw ConfigError(name + " is named twice");
  }
  return {joined_name(names)};
}

std::string joined_name(std::vector<std::string> names) {
  std::ranges::sort(names);
  return join(names, "+");
}

bool is_joined(const Collection& collection) {
  return collection.name.find('+') != std::string::npos;
}

std::vector<Collection> parts_of(const Collection& collection) {
  if (!is_joined(collection)) return {collection};
  std::vector<Collection> parts;
  for (const std::string& name : split(collection.name, '+')) parts.push_back({name});
  return parts;
}

void refuse_overlaps(const std::vector<std::pair<std::string, Collection>>& scored) {
  using Scored = std::pair<std::string, Collection>;
  std::map<std::string, const Scored*> first;  // with this collection
  for (const Scored& own : scored) {
    for (const Collection& part : parts_of(own.second)) {
      const Scored& other = *first.emplace(part.name, &own).first->second;
      if (other.second.name == own.second.name) continue;
      throw ConfigError(fmt::format(
          "{} is of {}, and {} of {}: both score the graphs of {}, but only members of the same "
          "collections are combined; give those of each by themselves",
          own.first, own.second.name, other.first, other.second.name, part.name));
    }
  }
}

std::string_view collection_of_id(std::string_view id) {
  const int parts = id.starts_with("tile:") ? 2 : 3;
  std::size_t end = id.find(':');
  for (int part = 1; part < parts && end != std::string_view::npos; ++part)
    end = id.find(':', end + 1);
  if (end == std::string_view::npos || end + 1 == id.size()) return {};
  const std::string_view name = id.substr(0, end);
  return Collection::is_name(name) ? name : std::string_view();
}

std::string_view graph_of_id(std::string_view id) {
  const std::string_view collection = collection_of_id(id);
  return collection.empty() ? id : id.substr(collection.size() + 1);
}

bool fits_graph(const std::vector<std::string>& patterns, std::string_view id) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return glob_match(pattern, graph_of_id(id)) ||
           (pattern.find(':') != std::string::npos && glob_match(pattern, id));
  });
}

}  // namespace tpudist
