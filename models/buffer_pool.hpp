#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace tpudist {

class BufferPool;

// A block of float32 from a BufferPool, aligned to 64 bytes, with undefined content; goes back when
// destroyed. Move-only.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { release(); }

  float* data() const { return data_; }
  std::int64_t capacity() const { return capacity_; }
  void release();

 private:
  friend class BufferPool;
  BufferPool* pool_ = nullptr;
  float* data_ = nullptr;
  std::int64_t capacity_ = 0;
};

// Keeps blocks of memory for reuse: on fresh pages a tall GEMM runs at half its speed. Never holds
// more than a quarter above what was in use at once. Must outlive its buffers. Thread-safe.
class BufferPool {
 public:
  BufferPool() = default;
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // At least `floats` floats; 0 gives an empty buffer. Throws std::bad_alloc.
  Buffer take(std::int64_t floats);

  std::uint64_t bytes_in_use() const;
  std::uint64_t bytes_held() const;  // in use and kept

 private:
  friend class Buffer;
  void give_back(float* data, std::int64_t capacity);
  void free_largest();

  mutable std::mutex mutex_;
  std::map<std::int64_t, std::vector<float*>> kept_;  // by capacity
  std::int64_t in_use_ = 0, kept_floats_ = 0, peak_ = 0;
};

}  // namespace tpudist
