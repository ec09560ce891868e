#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/schema/tpugraphs.hpp"

namespace tpudist {

// Graphs of one kind that are trained and scored together: "layout:X:Y" or "tile:X", where X and Y
// consist of letters (case matters), digits, '_' and '-'. TpuGraphs' five have the competition's
// names: "tile:xla", "layout:xla:default", "layout:xla:random", "layout:nlp:default",
// "layout:nlp:random". Any other name is the user's own data.
struct Collection {
  std::string name;
  // TpuGraphs', unless read with the graphs (with_schema, Manifest).
  FeatureSchema schema = name.starts_with("tile:") ? kTileSchema : kLayoutSchema;

  bool is_tile() const;
  // Relative folder in the NPZ root and in the shard root, e.g. "layout/xla/random" or "tile/xla".
  std::filesystem::path folder() const;
  // Whether this is one of TpuGraphs' five, which always have the data set's schema.
  bool is_tpugraphs() const;

  // Throws ConfigError, with the nearest of TpuGraphs' names, if `name` has neither form.
  static Collection parse(std::string_view name);
  static bool is_name(std::string_view name);
  static const std::vector<std::string>& tpugraphs_names();
};

inline constexpr std::string_view kSplits[] = {"train", "valid", "test"};

}  // namespace tpudist
