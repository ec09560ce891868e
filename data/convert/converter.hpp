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
  bool published = false;              // the manifest was written
  std::int64_t graphs = 0;             // in the manifest
  std::int64_t converted = 0;          // of these, converted in this run
  std::int64_t kept = 0;               // of these, kept from an earlier run
  std::vector<Manifest::Skipped> bad;  // every bad file, with the error
  std::uint64_t float_bytes = 0, memory_bytes = 0, stored_bytes = 0;  // configuration features
};

// Converts NPZ files to shards, several files at a time. Keeps an existing complete shard whose
// sources have the same size and hash. Each shard appears by rename; a shard with a predecessor
// gets another name. The manifest is written last, and only then are unlisted shards removed, so
// that the earlier conversion stays valid until then. Each collection's folder is locked meanwhile.
//
// Bad files do not stop the work: the log and the result name all of them. Their collection is then
// not published, or with `skip_bad` published without them (if a bad file was converted before,
// only with `replace` too). Throws ConfigError when there is nothing to convert or the folders are
// unsuitable (data/convert/folder_checks.hpp), Error when another process converts one of the
// collections, and IoError.
std::vector<ConvertedCollection> convert(const ConvertOptions& options, ProgressSink& progress);

}  // namespace tpudist
