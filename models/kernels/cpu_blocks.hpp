#pragma once

#include <algorithm>
#include <cstdint>

#include "core/aligned.hpp"

namespace tpudist {

// How the CPU executor cuts rows into tasks. The cuts influence the bits of the results, so they
// are a pure function of the numbers of rows.

// Rows of one task: small enough that a block's inputs and outputs stay in the second cache level,
// large enough for BLAS.
inline constexpr std::int64_t kBlockRows = 256;
// Most partial gradients per member and layer, and least blocks of each.
inline constexpr std::int64_t kMaxChunks = 8, kMinChunkBlocks = 1;

// Rows of one task in a layer of a refined plan: fewer for short matrices, so that there are enough
// tasks.
inline std::int64_t refined_block_rows(std::int64_t rows) {
  return std::clamp<std::int64_t>(pad16((rows + 7) / 8), 64, kBlockRows);
}
inline std::int64_t block_count(std::int64_t rows) {
  return (rows + kBlockRows - 1) / kBlockRows;
}
inline std::int64_t chunk_blocks(std::int64_t blocks) {
  return std::max(kMinChunkBlocks, (blocks + kMaxChunks - 1) / kMaxChunks);
}
inline std::int64_t chunk_count(std::int64_t blocks) {
  return (blocks + chunk_blocks(blocks) - 1) / chunk_blocks(blocks);
}

// Returns memory of the calling thread, aligned to 64 bytes, with undefined content, valid until
// the next call with this slot (0 or 1).
float* block_scratch(int slot, std::int64_t floats);

}  // namespace tpudist
