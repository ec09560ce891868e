#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "core/aligned.hpp"
#include "core/thread_pool.hpp"

namespace tpudist {

// How the CPU cuts rows into tasks of the thread pool. The cuts influence the bits of the results,
// so they are a pure function of the numbers of rows.

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
inline float* block_scratch(int slot, std::int64_t floats) {
  thread_local AlignedFloats scratch[2];
  if (static_cast<std::int64_t>(scratch[slot].size()) < floats)
    scratch[slot] = AlignedFloats(floats);
  return scratch[slot].data();
}

// Runs body(first row, number of rows) for every block of kBlockRows rows.
inline void for_row_blocks(ThreadPool& pool, std::int64_t rows,
                           const std::function<void(std::int64_t, std::int64_t)>& body) {
  pool.parallel_for(block_count(rows), [&](std::int64_t block) {
    const std::int64_t first = block * kBlockRows;
    body(first, std::min(kBlockRows, rows - first));
  });
}

// How many rows share one partial sum of a parameter's gradient in an operator: whole blocks,
// enough of them for at most 32 partial sums.
inline std::int64_t chunk_rows(std::int64_t rows) {
  constexpr std::int64_t kMostChunks = 32;
  return std::max<std::int64_t>(1, block_count((rows + kMostChunks - 1) / kMostChunks)) *
         kBlockRows;
}

}  // namespace tpudist
