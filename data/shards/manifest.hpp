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

// One shard file of a collection.
struct ManifestShard {
  std::string file;  // relative to the collection's folder, e.g. "train/shard-00000.h5"
  std::string split;
  std::uint64_t bytes = 0, hash = 0;  // size and XXH3 of the file
  std::vector<GraphSummary> graphs;
};

// A file that was left out because it is bad.
struct SkippedFile {
  std::string source;  // relative to the NPZ root
  std::string error;
};

// What a collection's folder holds: manifest.json, written last, makes a conversion visible.
struct Manifest {
  Collection collection;
  std::vector<ManifestShard> shards;  // in the order (split, file)
  std::vector<SkippedFile> skipped;
};

// The manifest is a function of the shards only: no dates. Atomic. Throws IoError.
void write_manifest(const Manifest& manifest, const std::filesystem::path& path,
                    FileSystem& files = posix_file_system());

// Throws DataError when there is none, or it is not a manifest of this collection.
Manifest read_manifest(const std::filesystem::path& path, const Collection& collection);

// Compares what a manifest says of a shard, or of one of its graphs, with what the shard itself
// says. Throws DataError that names the shard, the field and both values at the first difference.
// Only file, split, and the names and order of graphs of each shard are compared.
void require_equal(const ManifestShard& listed, const ShardSummary& found,
                   const Collection& collection, std::string_view where);
void require_equal(const GraphSummary& listed, const GraphSummary& found, std::string_view where);

// One line for each fault of the manifest that can be seen without its shards: totals that are not
// the sums of its graphs, shards that are listed twice, out of order or outside their split's
// folder, graphs of one name in a split. `manifest` is what read_manifest made of the file.
std::vector<std::string> manifest_faults(const std::filesystem::path& path,
                                         const Manifest& manifest);

// Throws DataError when the shard is not in `folder` or has another size.
void check_shard_present(const std::filesystem::path& folder, const ManifestShard& shard);

}  // namespace tpudist
