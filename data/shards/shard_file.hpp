#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/thread_pool.hpp"
#include "data/hdf5/hdf5_dataset.hpp"
#include "data/schema/collection.hpp"
#include "data/schema/graph.hpp"
#include "data/shards/shard_format.hpp"

namespace tpudist {

// Writes one shard file of a collection with its schema, graph after graph: begin, the
// configuration arrays, end (or drop). Use a temporary file name: the file is complete only after
// `close`. Throws IoError. Call it from one thread; the pool deflates.
class ShardWriter {
 public:
  ShardWriter(const std::filesystem::path& path, const Collection& collection,
              std::string_view split, ThreadPool& pool);

  // Creates the next HDF5 group and writes its attributes and the graph's static arrays.
  void begin(const Graph& graph, std::int64_t configs, const SourceFile& source);
  // A dataset of the open HDF5 group, to fill chunk by chunk. Replaces an existing dataset of that
  // name.
  Hdf5Dataset create(const std::string& name, ElementType type, std::vector<std::int64_t> shape,
                     std::size_t chunk_bytes = kArrayChunkBytes);
  template <typename T>
  void write(const std::string& name, std::vector<std::int64_t> shape, std::span<const T> values) {
    create(name, element_type<T>(), std::move(shape)).write_all(std::as_bytes(values), pool_);
  }
  void write(const RunTimes& times);
  void remove(const std::string& name);  // a dataset of the open HDF5 group, if it exists

  void end();   // the graph is complete
  void drop();  // discards the graph: removes its HDF5 group
  std::int64_t graphs() const { return graphs_; }
  std::string group_name() const { return graph_group(graphs_); }  // of the open one

  // Marks the shard complete and closes it.
  void close();

  ThreadPool& pool() { return pool_; }

 private:
  std::string where_;
  ThreadPool& pool_;
  const FeatureSchema schema_;
  Hdf5Id file_, group_;
  std::int64_t graphs_ = 0;
};

// Fills a dataset with rows in order. The pool deflates whole chunks, several at a time, and
// verifies each by inflating it again.
class ChunkAppender {
 public:
  ChunkAppender(Hdf5Dataset& dataset, ThreadPool& pool);

  // Space for the next rows: at most `most`, at least one; the result has whole rows of
  // row_bytes(). Call `advance` after setting them.
  std::span<std::byte> room(std::int64_t most);
  void advance(std::int64_t rows);
  // Writes the remaining rows. Call it last.
  void finish();

 private:
  void flush();
  Hdf5Dataset& dataset_;
  ThreadPool& pool_;
  std::vector<std::vector<std::byte>> chunks_;  // some for each thread
  std::size_t used_chunks_ = 0;
  std::int64_t first_chunk_ = 0, rows_in_chunk_ = 0;
};

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
