#include "dist/collectives/row_math.hpp"

#include <algorithm>
#include <cstring>

namespace tpudist {
namespace {

constexpr std::int64_t range_length = 1 << 16;  // 256 KiB: about ten microseconds of work

}  // namespace

void add_range(float* out, const float* a, const float* b, std::int64_t length) {
#pragma GCC ivdep  // equal pointers are no dependence between elements
  for (std::int64_t i = 0; i < length; ++i) out[i] = a[i] + b[i];
}

void for_row_ranges(ThreadPool& pool, std::int64_t length,
                    const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (length <= range_length) {
    body(0, length);
    return;
  }
  pool.parallel_for((length + range_length - 1) / range_length, [&](std::int64_t range) {
    const std::int64_t begin = range * range_length;
    body(begin, std::min(range_length, length - begin));
  });
}

void add_rows(ThreadPool& pool, float* out, const float* a, const float* b, std::int64_t length) {
  for_row_ranges(pool, length, [&](std::int64_t begin, std::int64_t count) {
    add_range(out + begin, a + begin, b + begin, count);
  });
}

void copy_row(ThreadPool& pool, float* out, const float* from, std::int64_t length) {
  for_row_ranges(pool, length, [&](std::int64_t begin, std::int64_t count) {
    if (count > 0) std::memcpy(out + begin, from + begin, count * sizeof(float));
  });
}

float* grow(AlignedFloats& buffer, std::int64_t length) {
  length = std::max<std::int64_t>(length, 1);
  if (std::ssize(buffer) < length) {
    buffer.clear();  // nothing to carry over
    buffer.resize(length);
  }
  return buffer.data();
}

float* RowStore::take() {
  const MutexLock lock(mutex_);
  if (free_.empty()) return grow(rows_.emplace_back(), length_);
  float* row = free_.back();
  free_.pop_back();
  return row;
}

void RowStore::give_back(float* row) {
  const MutexLock lock(mutex_);
  free_.push_back(row);
}

void RowStore::take_all_back() {
  const MutexLock lock(mutex_);
  free_.clear();
  for (AlignedFloats& row : rows_) free_.push_back(row.data());
}

}  // namespace tpudist
