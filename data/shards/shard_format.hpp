#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tpudist {

// Names of the shard schema, version 1 (HDF5, readable by h5py):
//
//   /                attributes format, version, collection, split, created_by, complete
//   /graphs/000000   attributes name, source, source_size, source_xxh3, nodes, edges, configs,
//   config_nodes
//     node_feat f32[n,140]  node_opcode u8[n]  edge_index i32[m,2]  config_nodes i32[nc] (layout)
//     node_splits i64[1,s] (where the NPZ has it)
//     config_codes u8|u16[c,nc]  config_states i8|i16|i32|f32[S,18]  config_state_offset i32[nc+1]
//     or config_feat i8|i16|i32|f32[c,nc,18]                              (layout)
//     config_feat i8|i16|i32|f32[c,24]  runtime_normalizer i64[c]         (tile)
//     runtime i64[c]  config_group i32[c]
inline constexpr std::string_view kShardFormat = "tpudist-shard";
inline constexpr std::int64_t kShardVersion = 1;

// Chunk sizes of config_codes and config_feat, of which a random slate inflates a chunk for each
// row or two. The codes of the real AlexNet need as much space in chunks of 8 KiB as in chunks of
// 256 KiB. Features that do not repeat need 3 % more, and 5 to 10 % more time to convert.
inline constexpr std::size_t kCodeChunkBytes = 8 << 10;
inline constexpr std::size_t kFeatureChunkBytes = 16 << 10;

inline std::string graph_group(std::int64_t number) {
  return fmt::format("/graphs/{:06}", number);
}

}  // namespace tpudist
