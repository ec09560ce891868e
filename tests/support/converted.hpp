#pragma once

#include <filesystem>

#include "core/progress.hpp"
#include "data/convert/converter.hpp"

namespace tpudist::test {

// Converts all collections of `folder`/npz. Returns the folder of their shards, `folder`/shards.
inline std::filesystem::path convert_npz(const std::filesystem::path& folder) {
  ConvertOptions options;
  options.npz_root = folder / "npz";
  options.shard_root = folder / "shards";
  options.jobs = 1;
  NoProgress progress;
  convert(options, progress);
  return options.shard_root;
}

}  // namespace tpudist::test
