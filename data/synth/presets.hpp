#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/synth/models.hpp"
#include "data/synth/tile.hpp"

namespace tpudist::synth {

using SplitCounts = std::array<std::int64_t, 3>;  // train, valid, test

// The number of graphs and their sizes. Sizes spread between `low` and `high` with the mean `mean`.
struct Plan {
  SplitCounts graphs{};
  struct Range {
    std::int64_t low = 0, mean = 0, high = 0;
  } nodes;
  struct {
    std::int64_t low = 0, high = 0;
  } configs;
  double body_share = 0.4;                   // layout: see ModelSpec
  double corrupt_share = 0;                  // layout: share of runs that are corrupted in
                                             // corrupted graphs
  std::int64_t edges = 0, config_nodes = 0;  // layout: exact numbers, for the largest graph
};

struct Preset {
  std::optional<Plan> xla, nlp, tile;
};

// "tiny", "demo", "nlp", "xla", "tile" or "huge". Throws ConfigError with the nearest name for any
// other.
Preset preset_named(std::string_view name);
const std::vector<std::string>& preset_names();

struct LayoutJob {
  ModelSpec model;
  std::size_t split = 0;  // index into kSplits
  std::int64_t configs = 0;
  double corrupt_share = 0;  // 0: not corrupted
};

// The graphs of a plan. `source` is "xla" or "nlp". The seed draws 24 model families, eight for
// each split, so valid and test have only models that train has never seen.
std::vector<LayoutJob> layout_jobs(const Plan& plan, std::string_view source, std::uint64_t seed);
std::vector<KernelSpec> tile_jobs(const Plan& plan, std::uint64_t seed);

}  // namespace tpudist::synth
