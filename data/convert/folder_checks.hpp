#pragma once

#include <set>
#include <string>
#include <vector>

#include "data/convert/converter.hpp"

namespace tpudist {

// The sources of all graphs of a manifest, and whether a shard is in it.
std::set<std::string> sources_of(const Manifest& manifest);
bool lists(const Manifest& manifest, const std::string& shard);

// The next two throw ConfigError where a conversion would overwrite data that is not its own. None
// of them changes anything.

// Throws when the folders of sources and shards, or a collection's folders in them, are the same or
// one lies inside the other.
void require_separate_folders(const ConvertOptions& options,
                              const std::vector<Collection>& collections);

// Throws when the shard folder holds NPZ files of the collection. Throws, and with
// `options.replace` warns, where the source of a converted graph is no longer in
// `options.npz_root`; without a manifest, where none of the sources is. Returns the manifest of the
// earlier conversion, empty where there is none.
Manifest require_own_shards(const ConvertOptions& options, const Collection& collection);

// Logs a warning for each folder of NPZ files that is ignored because its name cannot be that of a
// collection, and for what is not read in the folders of collections, with the nearest name that
// is. With `chosen` for these collections only.
void warn_of_unread(const std::filesystem::path& npz_root, const std::vector<Collection>& chosen);

}  // namespace tpudist
