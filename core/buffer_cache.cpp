#include "core/buffer_cache.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace tpudist {
namespace {

// A free block serves requests of at least half its size: reused memory is in the CPU's caches.
constexpr std::int64_t kMaxWaste = 2;
constexpr std::size_t kLine = 64, kHugePage = std::size_t{2} << 20;

// Rounds up to one of eight sizes per power of two, so that units of similar size share blocks.
// Large sizes are whole huge pages.
std::int64_t size_class(std::int64_t floats) {
  const std::int64_t least = std::max<std::int64_t>(floats, 1024);
  constexpr std::int64_t kPage = kHugePage / sizeof(float);
  const std::int64_t eighth = std::bit_floor(static_cast<std::uint64_t>(least)) / 8;
  const std::int64_t step = 2 * least > kPage ? std::max(eighth, kPage) : eighth;
  return (least + step - 1) / step * step;
}

bool is_large(std::int64_t capacity) {
  return capacity * sizeof(float) >= kHugePage;
}

// Maps whole huge pages, which return to the system when they are freed. In the heap of the C
// library, blocks of other sizes would keep the pages between them: scoring all runs of AlexNet
// took 1.5 times the memory.
float* map_pages(std::size_t bytes) {
  void* const mapped =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(mapped);
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, kHugePage - before);
#ifdef MADV_HUGEPAGE
  madvise(begin + before, bytes, MADV_HUGEPAGE);  // fewer page faults and TLB misses
#endif
  return reinterpret_cast<float*>(begin + before);
}

float* allocate(std::int64_t capacity) {
  const std::size_t bytes = capacity * sizeof(float);
  if (is_large(capacity)) return map_pages(bytes);
  return static_cast<float*>(::operator new (bytes, std::align_val_t{kLine}));
}

void deallocate(float* data, std::int64_t capacity) {
  if (is_large(capacity)) {
    munmap(data, capacity * sizeof(float));
    return;
  }
  ::operator delete (data, std::align_val_t{kLine});
}

}  // namespace

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  cache_ = std::exchange(other.cache_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  capacity_ = std::exchange(other.capacity_, 0);
  return *this;
}

void Buffer::release() {
  if (cache_) std::exchange(cache_, nullptr)->give_back(data_, capacity_);
  data_ = nullptr;
  capacity_ = 0;
}

BufferCache::~BufferCache() {
  for (const auto& [capacity, blocks] : kept_) {
    for (float* block : blocks) deallocate(block, capacity);
  }
}

Buffer BufferCache::take(std::int64_t floats) {
  Buffer buffer;
  if (floats <= 0) return buffer;
  const std::int64_t capacity = size_class(floats);
  MutexLock lock(mutex_);
  const auto found = kept_.lower_bound(capacity);
  if (found != kept_.end() && found->first <= kMaxWaste * capacity) {
    buffer.data_ = found->second.back();
    buffer.capacity_ = found->first;
    found->second.pop_back();
    if (found->second.empty()) kept_.erase(found);
    kept_floats_ -= buffer.capacity_;
  } else {
    lock.unlock();
    buffer.data_ = allocate(capacity);
    buffer.capacity_ = capacity;
    lock.lock();
  }
  buffer.cache_ = this;
  in_use_ += buffer.capacity_;
  peak_ = std::max(peak_, in_use_);
  while (kept_floats_ > 0 && in_use_ + kept_floats_ > peak_ + peak_ / 2) free_largest();
  return buffer;
}

void BufferCache::give_back(float* data, std::int64_t capacity) {
  const MutexLock lock(mutex_);
  in_use_ -= capacity;
  kept_[capacity].push_back(data);
  kept_floats_ += capacity;
}

void BufferCache::free_largest() {
  const auto largest = std::prev(kept_.end());
  deallocate(largest->second.back(), largest->first);
  kept_floats_ -= largest->first;
  largest->second.pop_back();
  if (largest->second.empty()) kept_.erase(largest);
}

std::uint64_t BufferCache::bytes_in_use() const {
  const MutexLock lock(mutex_);
  return in_use_ * sizeof(float);
}

std::uint64_t BufferCache::bytes_held() const {
  const MutexLock lock(mutex_);
  return (in_use_ + kept_floats_) * sizeof(float);
}

}  // namespace tpudist
