#include "core/near_path.hpp"

#include <algorithm>
#include <system_error>

#include "core/text.hpp"

namespace tpudist {

namespace fs = std::filesystem;

std::string near_path(const fs::path& wanted,
                      const std::function<bool(const fs::directory_entry&)>& accepts,
                      const std::vector<fs::path>& homes) {
  std::vector<fs::path> folders{wanted.parent_path()};
  if (folders[0].empty()) folders.insert(folders.end(), homes.begin(), homes.end());
  std::vector<std::string> names, paths;
  for (const fs::path& folder : folders) {
    std::error_code error;
    fs::directory_iterator entries(folder.empty() ? "." : folder, error);
    for (; !error && entries != end(entries); entries.increment(error)) {
      if (!accepts(*entries)) continue;
      const fs::path path = folder / entries->path().filename();
      names.push_back((is_yaml(*entries) ? path.stem() : path.filename()).string());
      paths.push_back(path.string());
    }
  }
  const fs::path name = wanted.extension() == ".yaml" ? wanted.stem() : wanted.filename();
  const auto at = std::ranges::find(names, nearest_of(name.string(), names));
  if (at == names.end()) return "";
  return "; did you mean " + paths[static_cast<std::size_t>(at - names.begin())] + "?";
}

bool is_yaml(const fs::directory_entry& entry) {
  return entry.path().extension() == ".yaml";
}

}  // namespace tpudist
