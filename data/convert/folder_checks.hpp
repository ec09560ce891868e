#pragma once

#include <vector>

#include "data/convert/converter.hpp"

namespace tpudist {

// The first two throw ConfigError where a conversion would overwrite data that is not its own. None
// of them changes anything.

// Throws when the folders of sources and shards, or a collection's folders in them, are the same or
// one lies inside the other.
void require_separate_folders(const ConvertOptions& options,
                              const std::vector<Collection>& collections);

// Throws when the shard folder holds NPZ files of the collection. Throws, and with `options.replace`
// warns, where the source of a converted graph is no longer in `options.npz_root`.
void require_own_shards(const ConvertOptions& options, const Collection& collection);

// Logs a warning for each folder of NPZ files that is ignored because its name cannot be that of a
// collection, and for what is not read in the folders of collections, with the nearest name that is.
void warn_of_unread(const std::filesystem::path& npz_root);

}  // namespace tpudist
