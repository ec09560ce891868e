#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "data/schema/collection.hpp"

namespace tpudist {

// The collections that have been converted into a folder of shards: those whose folder holds a
// manifest, in the order of find_collections. Throws IoError.
std::vector<Collection> converted_collections(const std::filesystem::path& shard_root);

// Throws ConfigError when no collection has been converted into the folder, and says what is there in
// their place: raw NPZ files, or shards in a folder above or below.
void require_any_shards(const std::filesystem::path& folder);

// Throws ConfigError when the folder holds no shards of the collection, and names the nearest one
// that it holds; `advice` says in the words of the command how to give another folder.
void require_shards(const std::filesystem::path& shard_root, const Collection& collection,
                    std::string_view advice);

}  // namespace tpudist
