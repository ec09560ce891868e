#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "data/schema/collection.hpp"

namespace tpudist {

// The collection with the schema that its manifest says. Unchanged where there is no manifest or it
// is damaged, which is said by whoever reads graphs; and TpuGraphs' five, for which none is read.
Collection with_schema(const std::filesystem::path& shard_root, Collection collection);

// The collections in a shard folder, those with a manifest, in the order of find_collections, with
// their schemas. Throws IoError.
std::vector<Collection> converted_collections(const std::filesystem::path& shard_root);

// Throws ConfigError when the folder has no converted collection. The message names what was found
// instead: raw NPZ files, or shards in a folder above or below.
void require_any_shards(const std::filesystem::path& folder);

// Throws ConfigError when the folder has no shards of the collection; the message names the nearest
// one that it has. `advice`: how to give another folder to this command.
void require_shards(const std::filesystem::path& shard_root, const Collection& collection,
                    std::string_view advice);

}  // namespace tpudist
