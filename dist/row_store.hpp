#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "core/aligned.hpp"

namespace tpudist {

// Makes `buffer` at least `length` long (and never empty, so that the pointer is not null); the
// content is lost then. It never shrinks, so that steps touch no fresh memory.
float* grow(AlignedFloats& buffer, std::int64_t length);

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
  std::vector<AlignedFloats> rows_;
  std::vector<float*> free_;
};

}  // namespace tpudist
