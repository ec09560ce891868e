#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "core/mutex.hpp"

namespace tpudist {

// A blocking first-in first-out queue of at most `capacity` items between threads. After `close`,
// `push` returns false; `pop` returns the remaining items, then nothing. Thread-safe.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity ? capacity : 1) {}

  // Waits for room. Returns false, and drops the item, when the queue is closed.
  bool push(T item) {
    MutexLock lock(mutex_);
    while (!closed_ && items_.size() >= capacity_) room_.wait(lock);
    if (closed_) return false;
    items_.push_back(std::move(item));
    filled_.notify_one();
    return true;
  }

  // Waits for an item. Returns nothing when the queue is closed and empty.
  std::optional<T> pop() {
    MutexLock lock(mutex_);
    while (!closed_ && items_.empty()) filled_.wait(lock);
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    room_.notify_one();
    return item;
  }

  void close() {
    const MutexLock lock(mutex_);
    closed_ = true;
    room_.notify_all();
    filled_.notify_all();
  }

  std::size_t size() const {
    const MutexLock lock(mutex_);
    return items_.size();
  }

 private:
  const std::size_t capacity_;
  mutable Mutex mutex_;
  std::condition_variable room_, filled_;
  std::deque<T> items_ TPUDIST_GUARDED_BY(mutex_);
  bool closed_ TPUDIST_GUARDED_BY(mutex_) = false;
};

}  // namespace tpudist
