#include "dist/row_store.hpp"

#include <algorithm>
#include <new>

namespace tpudist {

float* FloatBuffer::reserve(std::int64_t length) {
  if (length <= length_ && data_) return data_.get();
  constexpr std::size_t alignment = 64;
  // aligned_alloc wants a multiple of the alignment.
  const std::size_t bytes =
      (std::max<std::size_t>(length * sizeof(float), 1) + alignment - 1) / alignment * alignment;
  data_.reset();
  length_ = 0;
  data_.reset(static_cast<float*>(std::aligned_alloc(alignment, bytes)));
  if (!data_) throw std::bad_alloc();
  length_ = length;
  return data_.get();
}

float* RowStore::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return rows_.emplace_back().reserve(length_);
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
  for (const FloatBuffer& row : rows_) free_.push_back(row.data());
}

}  // namespace tpudist
