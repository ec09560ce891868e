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

// Chunks of config_codes and config_feat, which random slates inflate for a row or two of each.
// Codes of the real AlexNet take as much room in chunks of 8 KiB as in chunks of 256 KiB; features
// that do not repeat take 3 % more, and converting them 5 to 10 % more time.
inline constexpr std::size_t kCodeChunkBytes = 8 << 10;
inline constexpr std::size_t kFeatureChunkBytes = 16 << 10;

inline std::string graph_group(std::int64_t number) {
  return fmt::format("/graphs/{:06}", number);
}

}  // namespace tpudist
