#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "data/schema/collection.hpp"

namespace tpudist {

// Names of the shard schema, version 1 (HDF5, readable by h5py):
//
//   /                attributes format, version, collection, split, created_by, complete; for
//                    another schema than TpuGraphs' also node_features, config_features, opcodes,
//                    layout_columns, dimension_columns
//   /graphs/000000   attributes name, source, source_size, source_xxh3, nodes, edges, configs,
//                    config_nodes
//     node_feat f32[n,F]  node_opcode u8[n] (if any)  edge_index i32[m,2]
//     config_nodes i32[nc] (layout)  node_splits i64[1,s] (if the NPZ has it)
//     config_codes u8|u16[c,nc]  config_states i8|i16|i32|f32[S,C]  config_state_offset i32[nc+1]
//     or config_feat i8|i16|i32|f32[c,nc,C]                              (layout)
//     config_feat i8|i16|i32|f32[c,C]   runtime_normalizer i64[c]         (tile)
//     runtime i64[c]  config_group i32[c]
inline constexpr std::string_view kShardFormat = "tpudist-shard";
inline constexpr std::int64_t kShardVersion = 1;

// Chunk sizes of config_codes and config_feat. A random slate inflates a chunk for 1 or 2 rows.
// The codes of the real AlexNet need as much space in chunks of 8 KiB as in chunks of 256 KiB.
// Features that do not repeat need 3 % more space, and 5 to 10 % more time to convert.
inline constexpr std::size_t kCodeChunkBytes = 8 << 10;
inline constexpr std::size_t kFeatureChunkBytes = 16 << 10;

inline std::string graph_group(std::int64_t number) {
  return fmt::format("/graphs/{:06}", number);
}

// The NPZ file behind a graph.
struct SourceFile {
  std::string path;  // relative to the NPZ root, with '/'
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;  // XXH3 of the file

  bool operator==(const SourceFile&) const = default;
};

// A shard's description of one graph: attributes, sizes, and how its configurations are stored.
struct GraphSummary {
  std::string name, group;  // the HDF5 group: "/graphs/000000"
  FeatureSchema schema;     // of the collection
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

  // Memory of the configurations alone, in their stored width.
  std::uint64_t config_bytes() const {
    const std::uint64_t state_bytes =
        coded ? static_cast<std::uint64_t>(states * schema.config_features) * sizeof(float) : 0;
    return memory_bytes - std::min(state_bytes, memory_bytes);
  }
};

}  // namespace tpudist
