#pragma once

#include <set>
#include <string>
#include <vector>

#include "data/convert/converter.hpp"

namespace tpudist {

// The sources of all graphs of a manifest, and whether a shard is in it.
std::set<std::string> sources_of(const Manifest& manifest);
bool lists(const Manifest& manifest, const std::string& shard);

// The next two throw ConfigError if a conversion would overwrite data of others. They change
// nothing.

// Throws if the folders of sources and shards, or a collection's folders in them, are the same or
// nested.
void require_separate_folders(const ConvertOptions& options,
                              const std::vector<Collection>& collections);

// Throws if the shard folder holds NPZ files of the collection. Throws, or with `options.replace`
// warns, if `options.npz_root` lacks the source of a converted graph; without a manifest, if it
// lacks all of them. Returns the manifest of the earlier conversion, empty if there is none.
Manifest require_own_shards(const ConvertOptions& options, const Collection& collection);

// Warns of folders whose names cannot be those of a collection, and of entries that are not read in
// the folders of collections, with the nearest name that would be. With `chosen`, only for these
// collections.
void warn_of_unread(const std::filesystem::path& npz_root, const std::vector<Collection>& chosen);

}  // namespace tpudist
