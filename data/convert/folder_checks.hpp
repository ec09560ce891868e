#pragma once

#include <vector>

#include "data/convert/converter.hpp"

namespace tpudist {

// The first two throw ConfigError where a conversion would spoil data that is not its own. None
// changes anything.

// The folders of sources and of shards, or those of a collection below them, are one folder, or one
// lies within the other.
void require_separate_folders(const ConvertOptions& options,
                              const std::vector<Collection>& collections);

// The folder of shards holds NPZ files of the collection, or, unless `options.replace` is set,
// shards of which not one was made of a file that is now in `options.npz_root` (by path and size).
void require_own_shards(const ConvertOptions& options, const Collection& collection);

// Logs a warning for each folder of NPZ files that is passed over, because no collection can have
// its name.
void warn_of_misnamed_folders(const std::filesystem::path& npz_root);

}  // namespace tpudist
