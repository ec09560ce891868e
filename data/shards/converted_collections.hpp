#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "data/schema/collection.hpp"

namespace tpudist {

// The collection with the schema of its manifest. Unchanged if the manifest is missing or damaged,
// which reading the graphs reports. Does not read the manifests of TpuGraphs' five.
Collection with_schema(const std::filesystem::path& shard_root, Collection collection);

// The collections with a manifest in a shard folder, in the order of find_collections, with their
// schemas. Throws IoError.
std::vector<Collection> converted_collections(const std::filesystem::path& shard_root);

// Throws ConfigError if the folder has no converted collection. The message names what is there
// instead: raw NPZ files, or shards in a folder above or below.
void require_any_shards(const std::filesystem::path& folder);

// Throws ConfigError if the folder has no shards of the collection; the message names the nearest
// existing collection. `advice`: how to give another folder to this command.
void require_shards(const std::filesystem::path& shard_root, const Collection& collection,
                    std::string_view advice);

}  // namespace tpudist
