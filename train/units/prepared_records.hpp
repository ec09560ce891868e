#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/thread_pool.hpp"
#include "data/cache/cache_file.hpp"
#include "train/units/prepared_arrays.hpp"

namespace tpudist {

// Increase it whenever the same key would stand for different bytes.
inline constexpr std::uint64_t kPreparedRecordsVersion = 1;

// Prepared graphs in a cache file: the arrays of one graph after another, and in the directory a
// record of equal length for each graph.

// Estimated size of a file with these graphs.
std::uint64_t prepared_bytes(std::span<const PreparedArrays> graphs);

// Writes all graphs and finishes the file. All or none must have refined arrays. Throws IoError.
void write_prepared(std::span<const PreparedArrays> graphs, CacheFileWriter& writer,
                    std::uint64_t key, ThreadPool& pool);

// One graph out of the `count` in a file; the arrays stay in the file and keep it mapped.
// `refined`: the shape of the refined arrays, null if there are none. Throws DataError if the
// directory belongs to other graphs.
PreparedArrays read_prepared(const CacheFile& file, std::size_t graph, std::size_t count,
                             const PlanShape* refined);

}  // namespace tpudist
