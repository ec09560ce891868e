#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "data/hdf5/hdf5_dataset.hpp"
#include "data/schema/graph.hpp"

namespace tpudist {

// The configurations of one chunk of a shard, inflated, in the width in which they are stored.
struct ConfigChunk {
  ConfigCodes codes;                    // coded graphs: [rows, nc]
  Array<std::byte> features;            // other graphs: [rows, features] of `type`
  ElementType type = ElementType::f32;  // of features: i8, i16, i32 or f32 (data/hdf5/narrow.hpp)

  std::uint64_t bytes() const;
};

// Keeps the chunks that were used last, up to a number of bytes. Threads that want a chunk which
// one of them already reads wait for it, so that no chunk is read twice at the same time; other
// chunks are read side by side. A chunk that was handed out lives as long as it is held, also when
// the cache has dropped it, so memory is bounded by the capacity and one chunk for each thread.
// Thread-safe.
class CodeCache {
 public:
  using Load = std::function<ConfigChunk(int graph, std::int64_t chunk)>;
  using Handle = std::shared_ptr<const ConfigChunk>;

  // `load` is called from the threads that call `get`, without a lock.
  CodeCache(std::uint64_t capacity_bytes, Load load);
  ~CodeCache();

  // Throws what `load` throws, in all threads that waited for the chunk; the next `get` tries
  // again.
  Handle get(int graph, std::int64_t chunk);

  struct Statistics {
    std::uint64_t bytes = 0;   // held now
    std::uint64_t chunks = 0;  // held now
    std::uint64_t hits = 0;    // gets that found their chunk, or one that was just being read
    std::uint64_t loads = 0;   // gets that read it
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

  Handle load(const Key& key, std::unique_lock<std::mutex>& lock);
  void keep(const Key& key, const Handle& chunk);

  const std::uint64_t capacity_;
  const Load load_;
  mutable std::mutex mutex_;
  std::list<Kept> kept_;  // last used first
  std::unordered_map<Key, std::list<Kept>::iterator, KeyHash> kept_at_;
  std::unordered_map<Key, std::shared_ptr<Flight>, KeyHash> flights_;
  Statistics statistics_;
};

}  // namespace tpudist
