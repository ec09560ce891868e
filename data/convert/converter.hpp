#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/progress.hpp"
#include "data/schema/collection.hpp"
#include "data/shards/config_codec.hpp"
#include "data/shards/manifest.hpp"

namespace tpudist {

struct ConvertOptions {
  std::filesystem::path npz_root;  // holds layout/ and tile/
  std::filesystem::path shard_root;
  std::vector<Collection> collections;  // empty: all that npz_root holds
  int jobs = 0;                         // files at a time; 0: one for each core
  bool skip_bad = false;                // publish a collection without its bad files
  bool replace = false;                 // replace shards of other data
  // Shared by the files in flight, beside about 40 MB of the program.
  std::uint64_t memory_bytes = 160 << 20;
  ConfigEncoder::Limits limits;
};

// What became of one collection.
struct ConvertedCollection {
  Collection collection;
  bool published = false;        // its manifest was written
  std::int64_t graphs = 0;       // in the manifest
  std::int64_t converted = 0;    // of them, in this run
  std::int64_t kept = 0;         // of them, found finished from an earlier run
  std::vector<SkippedFile> bad;  // every bad file, with the error
  std::uint64_t float_bytes = 0, memory_bytes = 0, stored_bytes = 0;  // configuration features
};

// Converts NPZ files to shards, several files at a time. A shard that is there and whole, and whose
// sources have the same size and hash, is kept. Every shard appears by rename; a manifest appears
// last, and an old one goes before the first shard changes. Bad files do not stop the work: all of
// them are found and named (in the log, and in the result); their collection is then not
// published, or with `skip_bad` published without them. Shards that are in no plan any more are
// removed. The folder of each collection is locked meanwhile. Throws ConfigError when there is
// nothing to convert or the folders are not fit for it (data/convert/folder_checks.hpp), Error when
// another process converts one of the collections, IoError.
std::vector<ConvertedCollection> convert(const ConvertOptions& options, ProgressSink& progress);

}  // namespace tpudist
