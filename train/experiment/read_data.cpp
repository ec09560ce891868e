#include "train/experiment/read_data.hpp"

#include "core/error.hpp"
#include "train/experiment/limits.hpp"

namespace tpudist {
namespace {

Collection read_collection(ConfigNode& data) {
  data.require("collection");
  const std::string name = data.text("collection", "layout:xla:random");
  try {
    return Collection::parse(name);
  } catch (const ConfigError& error) {
    data.mistake("collection", error.what());
    return Collection{"layout:xla:random"};
  }
}

DuplicatesPolicy read_duplicates(ConfigNode& data) {
  const std::string name =
      data.choice("duplicates", "min", {"keep", "min", "mean", "median", "first"});
  if (name == "keep") return DuplicatesPolicy::keep;
  if (name == "mean") return DuplicatesPolicy::mean;
  if (name == "median") return DuplicatesPolicy::median;
  if (name == "first") return DuplicatesPolicy::first;
  return DuplicatesPolicy::min;
}

GraphReduction read_reduction(ConfigNode reduce, const Collection& collection) {
  GraphReduction reduction;
  reduction.wanted = reduce.choice("keep", "none", {"none", "config_neighbours"}) != "none";
  if (!reduction.wanted) {
    // Declared as known, so that `keep: none` can turn off keys that a file gives.
    for (const char* key : {"hops", "direction", "edges"}) {
      if (reduce.has(key) && !reduce.has("keep"))
        reduce.mistake(key, "is of reduced graphs: give data.reduce.keep=config_neighbours");
    }
    return reduction;
  }
  if (collection.is_tile()) {
    reduce.mistake(
        "keep", "tile graphs have no configurable nodes to keep the neighbours of: leave it out");
  }
  reduction.hops = positive(reduce, "hops", 1);
  const std::string direction =
      reduce.choice("direction", "both", {"both", "to_producer", "to_consumer"});
  reduction.direction = direction == "both"          ? ReachDirection::both
                        : direction == "to_producer" ? ReachDirection::to_producer
                                                     : ReachDirection::to_consumer;
  reduction.edges = reduce.choice("edges", "touching_config", {"touching_config", "all"}) == "all"
                        ? KeptEdges::all
                        : KeptEdges::touching_config;
  return reduction;
}

}  // namespace

DataConfig read_data(ConfigNode data) {
  DataConfig config;
  data.require("shards");
  config.shards = data.text("shards", "tpudist-data");
  config.collection = read_collection(data);
  config.duplicates = read_duplicates(data);
  ConfigNode include = data.child("include"), exclude = data.child("exclude");
  config.include_train = include.texts("train", {});
  config.include_valid = include.texts("valid", {});
  config.exclude_train = exclude.texts("train", {});
  config.exclude_valid = exclude.texts("valid", {});
  config.reduction = read_reduction(data.child("reduce"), config.collection);
  const std::string cache = data.choice("cache", "auto", {"auto", "memory", "stream"});
  config.cache = cache == "memory"   ? CacheMode::memory
                 : cache == "stream" ? CacheMode::stream
                                     : CacheMode::automatic;
  config.cache_bytes = static_cast<std::uint64_t>(data.integer(
      "cache_bytes", std::int64_t{2} << 30, {std::int64_t{1} << 20, std::int64_t{1} << 50}));
  config.cache_dir = data.text("cache_dir", "none");
  if (config.cache_dir.empty()) data.mistake("cache_dir", "must be none, auto or a folder");
  config.cache_size = static_cast<std::uint64_t>(data.integer(
      "cache_size", std::int64_t{32} << 30, {std::int64_t{1} << 20, std::int64_t{1} << 50}));
  return config;
}

}  // namespace tpudist
