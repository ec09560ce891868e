#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/aligned.hpp"
#include "core/mutex.hpp"
#include "core/thread_pool.hpp"

namespace tpudist {

// Additions and copies of long float32 rows, split into fixed ranges for the threads of a pool.
// They are element-wise, so the bits do not depend on the threads.

// Sets out[i] = a[i] + b[i] for i in [0, length) in the calling thread. `out` may be `a` or `b`;
// otherwise nothing may overlap.
void add_range(float* out, const float* a, const float* b, std::int64_t length);

// The same sum, and a copy, on the threads of the pool.
void add_rows(ThreadPool& pool, float* out, const float* a, const float* b, std::int64_t length);
void copy_row(ThreadPool& pool, float* out, const float* from, std::int64_t length);

// Calls body(begin, count) for fixed ranges of [0, length), on the threads of the pool.
void for_row_ranges(ThreadPool& pool, std::int64_t length,
                    const std::function<void(std::int64_t, std::int64_t)>& body);

// Makes `buffer` at least `length` long and never empty, so that the pointer is not null. Growing
// loses the content. It never shrinks, so that later steps touch no fresh memory.
float* grow(AlignedFloats& buffer, std::int64_t length);

// Lends rows of one length, so that steps reuse the same memory. Thread-safe.
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
  Mutex mutex_;
  std::vector<AlignedFloats> rows_ TPUDIST_GUARDED_BY(mutex_);
  std::vector<float*> free_ TPUDIST_GUARDED_BY(mutex_);  // of rows_
};

}  // namespace tpudist
