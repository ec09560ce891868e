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

// Throws when the shard folder holds NPZ files of the collection. Also when, without
// `options.replace`, it holds shards of which none was made from a file that is now in
// `options.npz_root` (by path and size).
void require_own_shards(const ConvertOptions& options, const Collection& collection);

// Logs a warning for each folder of NPZ files that is ignored because its name cannot be that of a
// collection.
void warn_of_misnamed_folders(const std::filesystem::path& npz_root);

}  // namespace tpudist
