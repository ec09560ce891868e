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
  std::vector<Collection> collections;  // empty: all in npz_root
  int jobs = 0;                         // files at a time; 0: one per core
  bool skip_bad = false;                // publish a collection without its bad files
  bool replace = false;                 // replace shards made from other data
  // Budget for all files being converted, in addition to about 40 MB for the program itself.
  std::uint64_t memory_bytes = 160 << 20;
  ConfigEncoder::Limits limits;
};

// The result for one collection.
struct ConvertedCollection {
  Collection collection;
  bool published = false;        // its manifest was written
  std::int64_t graphs = 0;       // in the manifest
  std::int64_t converted = 0;    // of these, converted in this run
  std::int64_t kept = 0;         // of these, kept from an earlier run
  std::vector<SkippedFile> bad;  // every bad file, with the error
  std::uint64_t float_bytes = 0, memory_bytes = 0, stored_bytes = 0;  // configuration features
};

// Converts NPZ files to shards, several files at a time. An existing complete shard whose sources
// have the same size and hash is kept. Each shard appears by rename, one that has a predecessor
// under a name beside it. The manifest is written last, and only then are shards removed that it
// does not list: what was converted before stays as it is until then. Each collection's folder is
// locked meanwhile.
//
// Bad files do not stop the work: all are found and named in the log and in the result. Their
// collection is then not published, or with `skip_bad` published without them (those that were
// converted before: with `replace` as well). Throws ConfigError when there is nothing to convert or
// the folders are unsuitable (data/convert/folder_checks.hpp), Error when another process converts
// one of the collections, and IoError.
std::vector<ConvertedCollection> convert(const ConvertOptions& options, ProgressSink& progress);

}  // namespace tpudist
