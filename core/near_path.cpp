#include "core/near_path.hpp"

#include <map>
#include <ranges>
#include <system_error>

#include "core/text.hpp"

namespace tpudist {

namespace fs = std::filesystem;

std::string near_path(const fs::path& wanted,
                      const std::function<bool(const fs::directory_entry&)>& accepts,
                      const std::vector<fs::path>& homes) {
  std::vector<fs::path> folders{wanted.parent_path()};
  if (folders[0].empty()) folders.insert(folders.end(), homes.begin(), homes.end());
  const auto name_of = [](const fs::path& path) {
    return (path.extension() == ".yaml" ? path.stem() : path.filename()).string();
  };
  std::map<std::string, std::string> paths;  // by name
  for (const fs::path& folder : folders) {
    std::error_code error;
    fs::directory_iterator entries(folder.empty() ? "." : folder, error);
    for (; !error && entries != end(entries); entries.increment(error)) {
      const fs::path path = entries->path();
      if (accepts(*entries)) paths.emplace(name_of(path), (folder / path.filename()).string());
    }
  }
  const auto names = std::views::keys(paths);
  const std::vector<std::string> sorted(names.begin(), names.end());
  const std::string nearest = nearest_of(name_of(wanted), sorted);
  return nearest.empty() ? "" : "; did you mean " + paths.at(nearest) + "?";
}

}  // namespace tpudist
