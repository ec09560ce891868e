#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/thread_pool.hpp"
#include "data/cache/cache_file.hpp"
#include "train/units/prepared_arrays.hpp"

namespace tpudist {

// Raised whenever the same key would stand for other bytes.
inline constexpr std::uint64_t kPreparedRecordsVersion = 1;

// Prepared graphs in a cache file: the arrays of a graph one behind the other, and in the directory
// a record of equal length for each graph.

// About as many bytes as a file of these graphs will have.
std::uint64_t prepared_bytes(std::span<const PreparedArrays> graphs);

// Writes all graphs, of which all or none have refined arrays, and finishes the file. Throws
// IoError.
void write_prepared(std::span<const PreparedArrays> graphs, CacheFileWriter& writer,
                    std::uint64_t key, ThreadPool& pool);

// One graph of `count` that a file has; the arrays lie in the file and keep it mapped. `refined`:
// the shape that refined arrays are for, null where there are none. Throws DataError where the
// directory is of other graphs.
PreparedArrays read_prepared(const CacheFile& file, std::size_t graph, std::size_t count,
                             const PlanShape* refined);

}  // namespace tpudist
