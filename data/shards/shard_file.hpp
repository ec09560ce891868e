#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/hdf5/hdf5_dataset.hpp"
#include "data/shards/shard_writer.hpp"

namespace tpudist {

// A shard's description of one graph: attributes, sizes, and how its configurations are stored.
struct GraphSummary {
  std::string name, group;  // the HDF5 group: "/graphs/000000"
  SourceFile source;
  std::int64_t nodes = 0, edges = 0, configs = 0, config_nodes = 0;
  std::int64_t distinct_configs = 0;
  bool coded = false;
  std::string config_type;               // element type of config_codes or config_feat, e.g. "u8"
  std::int64_t states = 0;               // coded only
  std::int64_t max_states_per_node = 0;  // coded only
  std::uint64_t float_bytes = 0;         // the configurations' features as float32
  std::uint64_t memory_bytes = 0;        // memory for codes and float32 states, or for narrow
                                         // features
  std::uint64_t stored_bytes = 0;        // the same in the file
};

struct ShardSummary {
  std::string collection, split;
  std::vector<GraphSummary> graphs;
};

// Opens a shard for reading and checks format, version and completeness. Throws DataError, or
// IoError when the file does not exist.
Hdf5Id open_shard(const std::filesystem::path& path);

// Everything in a shard except its large arrays. Throws like open_shard.
ShardSummary summarize_shard(const std::filesystem::path& path);

// Throws DataError for a type other than i8, i16, i32 and f32.
void check_feature_type(const Hdf5Dataset& dataset);

// Rows of narrow features as floats. Throws like check_feature_type.
std::vector<float> read_widened(const Hdf5Dataset& dataset, std::int64_t first, std::int64_t count);

}  // namespace tpudist
