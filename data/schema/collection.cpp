#include "data/schema/collection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <system_error>

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

namespace fs = std::filesystem;

// The names of the folders in a folder; none if the folder is missing.
std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != end(entries); entries.increment(error)) {
    std::error_code gone;
    if (entries->is_directory(gone)) names.push_back(entries->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    throw IoError(fmt::format("cannot list {}: {}", folder.string(), error.message()));
  return names;
}

// All folders that may be a collection, relative to `root`.
std::vector<fs::path> collection_folders(const fs::path& root) {
  std::vector<fs::path> folders;
  for (const std::string& x : folders_in(root / "tile")) folders.push_back(fs::path("tile") / x);
  for (const std::string& x : folders_in(root / "layout")) {
    for (const std::string& y : folders_in(root / "layout" / x))
      folders.push_back(fs::path("layout") / x / y);
  }
  return folders;
}

// The name that the collection of this folder would have, "layout:X:Y" for layout/X/Y.
std::string name_of(const fs::path& folder) {
  std::vector<std::string> parts;
  for (const fs::path& part : folder) parts.push_back(part.string());
  return join(parts, ":");
}

// The position of a TpuGraphs collection in the usual order; other collections come after them.
std::ptrdiff_t place_of(const Collection& collection) {
  return std::ranges::find(Collection::tpugraphs_names(), collection.name) -
         Collection::tpugraphs_names().begin();
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

std::vector<Collection> find_collections(const fs::path& root,
                                         const std::function<bool(const Collection&)>& holds) {
  std::vector<Collection> found;
  for (const fs::path& folder : collection_folders(root)) {
    const std::string name = name_of(folder);
    if (Collection::is_name(name) && holds({name})) found.push_back({name});
  }
  std::ranges::sort(found, [](const Collection& a, const Collection& b) {
    return std::pair(place_of(a), a.name) < std::pair(place_of(b), b.name);
  });
  return found;
}

std::vector<fs::path> misnamed_folders(const fs::path& root) {
  std::vector<fs::path> folders = collection_folders(root);
  std::erase_if(folders, [](const fs::path& f) { return Collection::is_name(name_of(f)); });
  return folders;
}

fs::path root_with(const fs::path& folder, const std::function<bool(const fs::path&)>& is_wanted) {
  constexpr int kDepth = 5, kMostEntries = 10'000;  // a mistake may name any folder
  std::error_code error;
  fs::recursive_directory_iterator entry(fs::absolute(folder).lexically_normal(),
                                         fs::directory_options::skip_permission_denied, error);
  for (int seen = 0; !error && entry != end(entry) && seen < kMostEntries; ++seen) {
    if (is_wanted(entry->path())) {
      const fs::path own = entry->path().parent_path();
      for (fs::path at = own; at.has_relative_path(); at = at.parent_path()) {
        if (at.filename() == "layout" || at.filename() == "tile") return at.parent_path();
      }
      return own;
    }
    if (entry.depth() >= kDepth) entry.disable_recursion_pending();
    entry.increment(error);
  }
  return {};
}

bool is_npz(const fs::path& file) {
  return file.extension() == ".npz";
}

std::string what_is_there(const std::string& name, const std::vector<Collection>& there) {
  if (there.empty()) return {};
  std::vector<std::string> names;
  for (const Collection& collection : there) names.push_back(collection.name);
  const std::vector<std::string> near = near_names(name, names);
  if (near.size() == 1) return fmt::format(" (did you mean {}, which is there?)", near.front());
  return fmt::format(" (there are {})", join(names, ", "));
}

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
