#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/schema/collection.hpp"

namespace tpudist {

// One planned shard: the NPZ files, or the one tuning file, that go into one HDF5 file.
struct PlannedShard {
  std::string split;
  std::string file;  // relative to the collection's folder: "train/shard-00000.h5"
  std::vector<std::filesystem::path> sources;  // absolute, sorted by name
  std::uint64_t source_bytes = 0;
};

// The shards of a collection, from the sources (SourceNpz) below `npz_root`: one graph per shard
// for layout, up to 64 of the small tile graphs, and all graphs of a tuning file. The plan depends
// only on file names, so that an interrupted conversion finds its shards again. Throws IoError, and
// ConfigError for two sources of one name.
std::vector<PlannedShard> plan_shards(const std::filesystem::path& npz_root,
                                      const Collection& collection);

// The name for the successor of a planned shard: "train/shard-00000b.h5".
std::string second_name(const std::string& file);
// Whether a file name is one of these two names, or that of a temporary file of such a shard.
bool is_shard_name(std::string_view name);

// A file beside the splits of an own collection, for what the arrays do not say.
inline constexpr std::string_view kSchemaName = "schema.yaml";

// The collection with the schema of its sources below `npz_root`. TpuGraphs' five always have the
// schema of the data set. For own data, the first file whose arrays have widths gives the widths.
// Graphs with TpuGraphs' widths have its columns with a meaning. The number of opcodes is
// TpuGraphs', or 0 without node_opcode. A file schema.yaml overrides all this. Throws ConfigError
// with that file's mistakes, and for a schema.yaml beside TpuGraphs' own graphs.
Collection with_source_schema(const std::filesystem::path& npz_root, Collection collection);

}  // namespace tpudist
