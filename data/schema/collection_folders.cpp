#include "data/schema/collection_folders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "core/error.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

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

}  // namespace tpudist
