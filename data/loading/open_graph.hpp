#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/mutex.hpp"
#include "data/hdf5/element_type.hpp"
#include "data/loading/duplicates.hpp"
#include "data/schema/collection.hpp"
#include "data/schema/graph.hpp"
#include "data/shards/shard_reader.hpp"

namespace tpudist {

// The configurations of one chunk of a shard, inflated, in their stored width.
struct ConfigChunk {
  ConfigCodes codes;                    // coded graphs: [rows, nc]
  Array<std::byte> features;            // other graphs: [rows, features] of `type`
  ElementType type = ElementType::f32;  // of features: i8, i16, i32 or f32

  std::uint64_t bytes() const;
};

// Keeps the most recently used chunks, up to a number of bytes. If a thread already reads a chunk,
// other threads wait, so that no chunk is read twice at the same time; different chunks are read in
// parallel. A returned chunk lives as long as its handle, even after the cache drops it. Memory is
// bounded by the capacity plus one chunk per thread. Thread-safe.
class CodeCache {
 public:
  using Load = std::function<ConfigChunk(int graph, std::int64_t chunk)>;
  using Handle = std::shared_ptr<const ConfigChunk>;

  // `load` runs in the threads that call `get`, without a lock.
  CodeCache(std::uint64_t capacity_bytes, Load load);
  ~CodeCache();

  // Throws what `load` throws, in all threads that waited for the chunk; the next `get` tries
  // again.
  Handle get(int graph, std::int64_t chunk);

  struct Statistics {
    std::uint64_t bytes = 0;   // in the cache now
    std::uint64_t chunks = 0;  // in the cache now
    std::uint64_t hits = 0;    // gets that found their chunk kept or being read
    std::uint64_t loads = 0;   // gets that read their chunk
  };
  Statistics statistics() const;

 private:
  struct Key {
    int graph;
    std::int64_t chunk;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct Flight;  // a chunk that is being read
  struct Kept {
    Key key;
    Handle chunk;
  };

  Handle load(const Key& key) TPUDIST_REQUIRES(mutex_);  // releases it while it reads
  void keep(const Key& key, const Handle& chunk) TPUDIST_REQUIRES(mutex_);

  const std::uint64_t capacity_;
  const Load load_;
  mutable Mutex mutex_;
  // A chunk is kept or being read, never both; other chunks are in neither.
  std::list<Kept> kept_ TPUDIST_GUARDED_BY(mutex_);  // most recently used first
  std::unordered_map<Key, std::list<Kept>::iterator, KeyHash> kept_at_ TPUDIST_GUARDED_BY(mutex_);
  std::unordered_map<Key, std::shared_ptr<Flight>, KeyHash> flights_ TPUDIST_GUARDED_BY(mutex_);
  Statistics statistics_ TPUDIST_GUARDED_BY(mutex_);
};

// One graph of a Dataset: static part and run times in memory, configurations in memory (`chunks`)
// or read on demand (`reader`). Plain data; const functions are thread-safe.
struct OpenGraph {
  GraphEntry entry;
  std::optional<GraphReader> reader;  // as long as chunks may be read
  Graph graph;
  RunTimes times;
  ConfigStates states;
  MergedRows merged;  // empty: every configuration is a row
  bool coded = false;
  std::int64_t width = 0;  // number of codes or features per configuration
  std::int64_t chunk_rows = 1;
  std::vector<ConfigChunk> chunks;  // all of them, or none

  // Reads everything except the configurations. Throws DataError or IoError.
  static OpenGraph open(const GraphEntry& entry, const RowRules& rules);
  // Opens the shard to read chunks of a graph that has its other arrays. Throws DataError or
  // IoError.
  void open_reader();

  std::int64_t chunk_count() const { return (entry.configs + chunk_rows - 1) / chunk_rows; }

  // Reads one chunk and checks its codes. Needs the reader. Throws DataError or IoError.
  ConfigChunk read_chunk(std::int64_t number) const;

  // Type of the codes, or of the features of a graph without codes. Needs the reader.
  ElementType config_type() const;

  // Memory for all configurations. Needs the reader.
  std::uint64_t config_bytes() const;

  // Copies configuration `config`, a row of `chunk`, to position k of a slate: to states_out [K,
  // nc] if the graph is coded, else to features_out [K, width].
  void copy_config(const ConfigChunk& chunk, std::int64_t config, std::size_t k,
                   std::span<std::int32_t> states_out, std::span<float> features_out) const;

  std::uint64_t resident_bytes() const;
};

// Calls body(array) for each array of an OpenGraph, const or not, in the order of cache files,
// except chunks.
template <typename G, typename Body>
void for_each_array(G& g, Body&& body) {
  body(g.graph.node_features);
  body(g.graph.opcodes);
  body(g.graph.edge_index);
  body(g.graph.config_nodes);
  body(g.graph.node_splits);
  body(g.graph.config_edges);
  body(g.graph.segment);
  body(g.times.runtime);
  body(g.times.normalizer);
  body(g.times.group);
  body(g.states.features);
  body(g.states.offsets);
  body(g.merged.configs);
  body(g.merged.targets);
}

}  // namespace tpudist
