#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/tpugraphs.hpp"

namespace tpudist {

// One of the five collections of TpuGraphs, named as in the competition: "tile:xla",
// "layout:xla:default", "layout:xla:random", "layout:nlp:default", "layout:nlp:random".
struct Collection {
  std::string name;

  bool is_tile() const;
  // Relative folder, e.g. "layout/xla/random" or "tile/xla", in the NPZ root and in the shard root
  // alike.
  std::filesystem::path folder() const;
  int config_features() const { return is_tile() ? kTileConfigFeatures : kLayoutConfigFeatures; }

  // Throws ConfigError with the nearest name when `name` is not one of the five.
  static Collection parse(std::string_view name);
  static const std::vector<std::string>& all_names();
};

inline constexpr std::string_view kSplits[] = {"train", "valid", "test"};

}  // namespace tpudist
