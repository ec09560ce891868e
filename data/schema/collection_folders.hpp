#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/schema/collection.hpp"

namespace tpudist {

// The collections that have a folder below `root` (layout/X/Y or tile/X) for which `holds` is true:
// first those of TpuGraphs in their usual order, then all others by name. Throws IoError where a
// folder cannot be listed; a root that is not there has none.
std::vector<Collection> find_collections(const std::filesystem::path& root,
                                         const std::function<bool(const Collection&)>& holds);

// The folders at such a place whose names cannot be those of a collection, such as layout/v1.2/x.
std::vector<std::filesystem::path> misnamed_folders(const std::filesystem::path& root);

// For a folder given by mistake: the first file in it, or not far below, for which `is_wanted` is true says
// where the collections are: in the folder that holds layout/ or tile/ on the way to the file, or else in
// the file's own. Empty where there is no such file.
std::filesystem::path root_with(const std::filesystem::path& folder,
                                const std::function<bool(const std::filesystem::path&)>& is_wanted);

// Whether the name of a file ends in ".npz".
bool is_npz(const std::filesystem::path& file);

// The end of a message on a collection that is not there, such as " (did you mean layout:xla:random,
// which is there?)" or " (there are layout:xla:random, tile:xla)": of those that are, the nearest to
// `name` or else all. Empty where there are none.
std::string what_is_there(const std::string& name, const std::vector<Collection>& there);

}  // namespace tpudist
