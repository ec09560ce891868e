#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace tpudist {

// Owns float32 memory on a 64-byte boundary that grows and never shrinks.
class FloatBuffer {
 public:
  // Makes room for `length` floats; the content is lost when it had to grow.
  float* reserve(std::int64_t length);
  float* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  std::unique_ptr<float, Free> data_;
  std::int64_t length_ = 0;
};

// Hands out rows of one length and takes them back, so that steps reuse the same memory.
// Thread-safe.
class RowStore {
 public:
  explicit RowStore(std::int64_t length) : length_(length) {}

  float* take();
  void give_back(float* row);
  void take_all_back();  // of every row handed out

 private:
  std::int64_t length_;
  std::mutex mutex_;
  std::vector<FloatBuffer> rows_;
  std::vector<float*> free_;
};

}  // namespace tpudist
