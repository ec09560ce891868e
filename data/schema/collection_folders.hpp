#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/schema/collection.hpp"

namespace tpudist {

// The collections with a folder below `root` (layout/X/Y or tile/X) for which `holds` is true:
// first those of TpuGraphs in their usual order, then all others by name. Throws IoError if a
// folder cannot be listed; empty if `root` does not exist.
std::vector<Collection> find_collections(const std::filesystem::path& root,
                                         const std::function<bool(const Collection&)>& holds);

// Folders at that depth that cannot be a collection by their names, such as layout/v1.2/x.
std::vector<std::filesystem::path> misnamed_folders(const std::filesystem::path& root);

// Finds the right folder if the user gave a wrong one. Looks for the first file in `folder`, or a
// little below, for which `is_wanted` is true. Returns the folder above that file that holds
// layout/ or tile/, else the file's own folder. Empty if there is no such file.
std::filesystem::path root_with(const std::filesystem::path& folder,
                                const std::function<bool(const std::filesystem::path&)>& is_wanted);

// Whether the file name ends in ".npz".
bool is_npz(const std::filesystem::path& file);

// The end of a message about a missing collection, such as " (did you mean layout:xla:random, which
// is there?)" or " (there are layout:xla:random, tile:xla)": the existing name nearest to `name`,
// else all. Empty if none exists.
std::string what_is_there(const std::string& name, const std::vector<Collection>& there);

}  // namespace tpudist
