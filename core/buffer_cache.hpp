#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/mutex.hpp"

namespace tpudist {

class BufferCache;

// A block of float32 from a BufferCache, aligned to 64 bytes, with undefined content. The
// destructor returns the block to the cache. Move-only.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { release(); }

  float* data() const { return data_; }
  std::span<float> first(std::size_t floats) const { return {data_, floats}; }
  std::int64_t capacity() const { return capacity_; }
  void release();

 private:
  friend class BufferCache;
  BufferCache* cache_ = nullptr;
  float* data_ = nullptr;
  std::int64_t capacity_ = 0;
};

// Keeps blocks of memory for reuse, because a tall GEMM on fresh pages runs at half its speed. The
// cache holds at most 1.5 times the largest amount in use at once, and must outlive its buffers.
// Thread-safe.
class BufferCache {
 public:
  BufferCache() = default;
  ~BufferCache();
  BufferCache(const BufferCache&) = delete;
  BufferCache& operator=(const BufferCache&) = delete;

  // Returns a block of at least `floats` floats; for 0 an empty one. Throws std::bad_alloc.
  Buffer take(std::int64_t floats);

  std::uint64_t bytes_in_use() const;
  std::uint64_t bytes_held() const;  // in use and kept for reuse

 private:
  friend class Buffer;
  void give_back(float* data, std::int64_t capacity);
  void free_largest() TPUDIST_REQUIRES(mutex_);

  mutable Mutex mutex_;
  // Free blocks by capacity. A block is here or in use, never both.
  std::map<std::int64_t, std::vector<float*>> kept_ TPUDIST_GUARDED_BY(mutex_);
  std::int64_t in_use_ TPUDIST_GUARDED_BY(mutex_) = 0;
  std::int64_t kept_floats_ TPUDIST_GUARDED_BY(mutex_) = 0;
  std::int64_t peak_ TPUDIST_GUARDED_BY(mutex_) = 0;  // the largest in_use_ so far
};

}  // namespace tpudist
