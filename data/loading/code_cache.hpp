#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/mutex.hpp"
#include "data/hdf5/element_type.hpp"
#include "data/schema/graph.hpp"

namespace tpudist {

// The configurations of one chunk of a shard, inflated, in their stored width.
struct ConfigChunk {
  ConfigCodes codes;                    // coded graphs: [rows, nc]
  Array<std::byte> features;            // other graphs: [rows, features] of `type`
  ElementType type = ElementType::f32;  // of features: i8, i16, i32 or f32 (data/hdf5/narrow.hpp)

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

}  // namespace tpudist
