#pragma once

#include <filesystem>
#include <vector>

#include "data/schema/collection.hpp"

namespace tpudist {

// Prints the noise ceiling of each graph, or why it has none, and the mean of each split.
void inspect_ceilings(const std::filesystem::path& shard_root,
                      const std::vector<Collection>& collections, bool json);

}  // namespace tpudist
