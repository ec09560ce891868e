#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "core/aligned.hpp"

namespace tpudist {

// Makes `buffer` at least `length` long, and never empty, so that the pointer is not null; the
// content is lost when it grows. It never shrinks, so that later steps touch no fresh memory.
float* grow(AlignedFloats& buffer, std::int64_t length);

// Lends out rows of one length, so that steps reuse the same memory. Thread-safe.
class RowStore {
 public:
  explicit RowStore(std::int64_t length) : length_(length) {}

  // Returns a row of undefined content, valid until it is given back.
  float* take();
  void give_back(float* row);
  // Takes back all rows.
  void take_all_back();

 private:
  std::int64_t length_;
  std::mutex mutex_;
  std::vector<AlignedFloats> rows_;
  std::vector<float*> free_;
};

}  // namespace tpudist
