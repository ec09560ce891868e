#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/hdf5/hdf5_dataset.hpp"
#include "data/shards/shard_writer.hpp"

namespace tpudist {

struct ShardSummary {
  std::string collection, split;
  FeatureSchema schema;
  std::vector<GraphSummary> graphs;
};

// Opens a shard for reading and checks format, version and completeness. Throws DataError, and
// IoError if the file does not exist.
Hdf5Id open_shard(const std::filesystem::path& path);

// Everything in a shard except its large arrays. Throws like open_shard.
ShardSummary summarize_shard(const std::filesystem::path& path);

// Whether a graph may have this name: UTF-8 without control characters, which end lines of tables.
bool is_graph_name(std::string_view name);

// Throws DataError, beginning with `where`, for an impossible name or number. Sums and products of
// possible numbers do not overflow.
void require_possible(const GraphSummary& graph, std::string_view where);

// Throws DataError, beginning with `where`, for the first value that is not finite. `first`: the
// index of values[0] in the array.
void require_finite(std::span<const float> values, std::string_view where, std::int64_t first = 0);
// The same for stored rows, from row `first` on; whole numbers are finite.
void require_finite(const Hdf5Dataset& dataset, std::int64_t first,
                    std::span<const std::byte> rows);

// Throws DataError for a type other than i8, i16, i32 and f32.
void check_feature_type(const Hdf5Dataset& dataset);

// Rows of narrow features as floats. Throws like check_feature_type and require_finite.
std::vector<float> read_widened(const Hdf5Dataset& dataset, std::int64_t first, std::int64_t count);

}  // namespace tpudist
