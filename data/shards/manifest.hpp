#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_system.hpp"
#include "data/schema/collection.hpp"
#include "data/shards/shard_file.hpp"

namespace tpudist {

inline constexpr std::string_view kManifestName = "manifest.json";

// The content of a collection's folder. manifest.json is written last and makes a conversion
// visible.
struct Manifest {
  // One shard file of the collection.
  struct Shard {
    std::string file;  // relative to the collection's folder, e.g. "train/shard-00000.h5"
    std::string split;
    std::uint64_t bytes = 0, hash = 0;  // size and XXH3 of the file
    std::vector<GraphSummary> graphs;
  };
  // A bad file that was left out.
  struct Skipped {
    std::string source;  // relative to the NPZ root
    std::string error;
  };

  Collection collection;      // with its schema
  std::vector<Shard> shards;  // in the order (split, file)
  std::vector<Skipped> skipped;
};

// Writes atomically. The manifest is a function of the shards only, without dates. Throws IoError.
void write_manifest(const Manifest& manifest, const std::filesystem::path& path,
                    FileSystem& files = posix_file_system());

// Throws DataError if the file is missing or not a manifest of this collection. The schema of
// `collection` does not matter.
Manifest read_manifest(const std::filesystem::path& path, const Collection& collection);

// Compares the manifest's entry of a shard, or of a graph in it, with the shard itself. Throws
// DataError at the first difference, with the shard, the field and both values. For a shard,
// compares only file, split, and the names and order of its graphs.
void require_equal(const Manifest::Shard& listed, const ShardSummary& found,
                   const Collection& collection, std::string_view where);
void require_equal(const GraphSummary& listed, const GraphSummary& found, std::string_view where);

// One line for each fault of the manifest that is visible without its shards: totals that are not
// the sums over its graphs; shards listed twice, out of order or outside their split's folder; two
// graphs of one name in a split. `manifest` is the result of read_manifest.
std::vector<std::string> manifest_faults(const std::filesystem::path& path,
                                         const Manifest& manifest);

// Throws DataError if the shard is not in `folder` or has another size.
void check_shard_present(const std::filesystem::path& folder, const Manifest::Shard& shard);

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
