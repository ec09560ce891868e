#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/progress.hpp"
#include "data/schema/collection.hpp"
#include "data/shards/manifest.hpp"

namespace tpudist {

struct VerifyOptions {
  std::filesystem::path shard_root;
  std::optional<std::filesystem::path> npz_root;  // compare with the sources too
  int jobs = 0;                                   // shards at a time; 0: one for each core
};

struct VerifiedCollection {
  Collection collection;
  std::int64_t graphs = 0, configs = 0;  // that are sound
  // One line each, with file and place; at most one for each graph.
  std::vector<std::string> problems;
};

// Checks all collections below a shard root: manifests, sizes and hashes of shards, that manifests
// and shards say the same of every graph and that no shard is missing or left over, and every graph;
// with `npz_root` also that no NPZ file there is missing. Logs each problem and goes on. Throws
// ConfigError when there is no collection.
std::vector<VerifiedCollection> verify(const VerifyOptions& options, ProgressSink& progress);

}  // namespace tpudist
