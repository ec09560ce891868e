#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/progress.hpp"
#include "data/schema/collection.hpp"
#include "data/shards/manifest.hpp"
#include "data/shards/shard_file.hpp"

namespace tpudist {

struct VerifyOptions {
  std::filesystem::path shard_root;
  std::optional<std::filesystem::path> npz_root;  // also compare with the sources
  int jobs = 0;                                   // shards at a time; 0: one per core
};

struct VerifiedCollection {
  Collection collection;
  std::int64_t graphs = 0, configs = 0;  // without faults
  // One line each, with file and position; at most one per graph.
  std::vector<std::string> problems;
};

// Checks all collections below a shard root: manifests, sizes and hashes of shards, and every
// graph. Manifests and shards must agree on every graph, and no shard may be missing or unlisted.
// With `npz_root`, no NPZ file there may be missing either. Logs each problem and continues. Throws
// ConfigError when there is no collection.
std::vector<VerifiedCollection> verify(const VerifyOptions& options, ProgressSink& progress);

// Checks one graph of a shard: every chunk inflates, shapes agree with `graph`, nodes, opcodes and
// codes are in range, features are finite, run times positive (0 only in a test split), no node is
// configured twice, and config_group has equal numbers exactly for equal configurations. With
// `npz`, every array is compared with the source bit by bit. Throws DataError.
void verify_graph(const std::filesystem::path& shard, const GraphSummary& graph,
                  const Collection& collection, std::string_view split,
                  const std::optional<std::filesystem::path>& npz);

}  // namespace tpudist
