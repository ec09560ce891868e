#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/thread_pool.hpp"
#include "data/hdf5/element_type.hpp"
#include "data/schema/collection.hpp"
#include "data/schema/graph.hpp"
#include "data/shards/shard_format.hpp"

namespace tpudist {

// One graph of a collection's split, as in the manifest, and its location.
struct GraphEntry : GraphSummary {
  std::string split;             // "train", "valid" or "test"
  std::filesystem::path shard;   // absolute path of the HDF5 file
  std::uint64_t shard_hash = 0;  // XXH3 of the HDF5 file
};

// Lists the graphs of a collection below a shard root (all splits, or one), in the order (split,
// name), from its manifests. Throws DataError if there is no manifest, or a shard is missing or
// incomplete.
std::vector<GraphEntry> list_graphs(const std::filesystem::path& shard_root,
                                    const Collection& collection, std::string_view split = {});

// Reads every shard of `entries` once, several at a time. Throws DataError for a shard whose hash
// is not the manifest's, so that damaged bytes never reach HDF5. Throws IoError if a shard cannot
// be read.
void check_shard_hashes(std::span<const GraphEntry> entries, ThreadPool& pool);

// Reads one graph of a shard. Calls into HDF5 hold one process-wide lock; inflating does not.
// Thread-safe.
class GraphReader {
 public:
  // Opens the shard and checks format, version and completeness. Throws DataError or IoError.
  explicit GraphReader(const GraphEntry& entry);
  ~GraphReader();
  GraphReader(GraphReader&&) noexcept;
  GraphReader& operator=(GraphReader&&) noexcept;

  Graph read_graph() const;
  RunTimes read_run_times() const;

  // Layout graphs: true if the shard has config_codes + config_states, false if it has config_feat
  // [c, nc, C] because the graph's configurations do not repeat. Always false for tile.
  bool coded() const;
  ConfigStates read_states() const;  // coded only
  int code_bytes() const;            // coded only: 1 or 2
  // Reads the codes of configurations first .. first + count - 1, [count, nc]. Coded only.
  ConfigCodes read_codes(std::int64_t first, std::int64_t count) const;

  // Reads configurations first .. first + count - 1 as float: [count, nc, C] for an uncoded layout
  // graph, [count, C] for a tile graph.
  std::vector<float> read_config_features(std::int64_t first, std::int64_t count) const;
  // The same in the stored type: elements of feature_type(), which is i8, i16, i32 or f32.
  ElementType feature_type() const;
  std::vector<std::byte> read_stored_features(std::int64_t first, std::int64_t count) const;

  // Rows per chunk of config_codes or config_feat. Reading whole chunks is cheapest.
  std::int64_t chunk_rows() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Statistics of the run times of one graph.
struct RunTimeStatistics {
  std::int64_t min = 0, max = 0;  // ns; 0 in test splits
  std::int64_t distinct_configs = 0;
  std::int64_t repeated_configs = 0;  // configurations measured more than once
  std::int64_t repeated_rows = 0;     // their measurements
  std::int64_t most_repeats = 0;      // largest number for one configuration
  // Measurement noise: quartiles, over the repeated configurations, of max / min - 1 of the ranked
  // value. NumPy's percentiles (linear). Nothing if no configuration is repeated, or run times are
  // 0.
  std::optional<std::array<double, 3>> spread;
};

RunTimeStatistics run_time_statistics(const RunTimes& times);

struct GraphStatistics {
  GraphEntry entry;
  RunTimeStatistics times;
};

// All graphs of a collection in the order (split, name). Throws DataError.
std::vector<GraphStatistics> collection_statistics(const std::filesystem::path& shard_root,
                                                   const Collection& collection);

}  // namespace tpudist
