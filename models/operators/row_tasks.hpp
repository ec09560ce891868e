#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "core/thread_pool.hpp"

namespace tpudist {

// These functions cut the rows of a tensor into tasks of the thread pool. The cuts are a pure
// function of the number of rows, so that what a task computes does not depend on the number of
// threads.

// Rows of one task where rows are independent of each other: a block and its results fit in the
// level-2 cache.
inline constexpr std::int64_t kTaskRows = 256;

// Runs body(first row, number of rows) for every block of kTaskRows rows.
inline void for_row_blocks(ThreadPool& pool, std::int64_t rows,
                           const std::function<void(std::int64_t, std::int64_t)>& body) {
  pool.parallel_for((rows + kTaskRows - 1) / kTaskRows, [&](std::int64_t block) {
    const std::int64_t first = block * kTaskRows;
    body(first, std::min(kTaskRows, rows - first));
  });
}

// How many rows share one partial sum of a parameter's gradient: whole blocks, and so many that
// there are at most 32 partial sums.
inline std::int64_t chunk_rows(std::int64_t rows) {
  constexpr std::int64_t kMostChunks = 32;
  const std::int64_t least = (rows + kMostChunks - 1) / kMostChunks;
  return std::max<std::int64_t>(1, (least + kTaskRows - 1) / kTaskRows) * kTaskRows;
}

}  // namespace tpudist
