#include "dist/row_store.hpp"

#include <algorithm>

namespace tpudist {

float* grow(AlignedFloats& buffer, std::int64_t length) {
  length = std::max<std::int64_t>(length, 1);
  if (std::ssize(buffer) < length) {
    buffer.clear();  // nothing to carry over
    buffer.resize(length);
  }
  return buffer.data();
}

float* RowStore::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return grow(rows_.emplace_back(), length_);
  float* row = free_.back();
  free_.pop_back();
  return row;
}

void RowStore::give_back(float* row) {
  const std::lock_guard lock(mutex_);
  free_.push_back(row);
}

void RowStore::take_all_back() {
  const std::lock_guard lock(mutex_);
  free_.clear();
  for (AlignedFloats& row : rows_) free_.push_back(row.data());
}

}  // namespace tpudist
