#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/mutex.hpp"
#include "core/thread_pool.hpp"

namespace tpudist {

// Makes items `first`, `first + 1`, ... in background threads; `next` returns them in the order of
// their numbers. At most `depth` items are being made or waiting at any time, which bounds memory.
// `make` is called from several background threads (mark_background_thread) at once, once per
// number. If `make` throws, the `next` for that item rethrows, and the `next` after that continues
// with the following item. The destructor waits for running calls of `make` and starts no new ones.
// Call `next` from one thread.
template <typename T>
class Prefetcher {
 public:
  // `depth` and `threads` below 1 count as 1; no more than `depth` threads are started.
  Prefetcher(std::int64_t first, int depth, int threads, std::function<T(std::int64_t)> make);
  ~Prefetcher() { stop(); }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  T next();
  // Total time that `next` has waited.
  std::chrono::duration<double> waited() const { return waited_; }

 private:
  struct Outcome {
    std::optional<T> item;
    std::exception_ptr error;
  };
  void work();
  Outcome outcome_of(std::int64_t number) TPUDIST_EXCLUDES(mutex_);
  void stop();

  const std::function<T(std::int64_t)> make_;
  const std::int64_t depth_;
  Mutex mutex_;
  std::condition_variable room_, ready_;
  // Made but not yet returned. next_out_ <= their numbers < next_made_ <= next_out_ + depth_.
  std::map<std::int64_t, Outcome> outcomes_ TPUDIST_GUARDED_BY(mutex_);
  std::int64_t next_made_ TPUDIST_GUARDED_BY(mutex_), next_out_ TPUDIST_GUARDED_BY(mutex_);
  bool stopped_ TPUDIST_GUARDED_BY(mutex_) = false;
  std::chrono::duration<double> waited_{};  // of the thread that calls `next`
  std::vector<std::thread> threads_;
};

template <typename T>
Prefetcher<T>::Prefetcher(std::int64_t first, int depth, int threads,
                          std::function<T(std::int64_t)> make)
    : make_(std::move(make)), depth_(std::max(depth, 1)), next_made_(first), next_out_(first) {
  const int count = std::clamp(threads, 1, std::max(depth, 1));
  try {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {  // the system has no more threads: those already started must be joined
    stop();
    throw;
  }
}

template <typename T>
T Prefetcher<T>::next() {
  MutexLock lock(mutex_);
  const std::int64_t number = next_out_;
  if (!outcomes_.contains(number)) {
    const auto begin = std::chrono::steady_clock::now();
    while (!outcomes_.contains(number)) ready_.wait(lock);
    waited_ += std::chrono::steady_clock::now() - begin;
  }
  Outcome outcome = std::move(outcomes_.extract(number).mapped());
  ++next_out_;
  room_.notify_one();
  lock.unlock();
  if (outcome.error) std::rethrow_exception(outcome.error);
  return std::move(*outcome.item);
}

template <typename T>
void Prefetcher<T>::work() {
  mark_background_thread();
  MutexLock lock(mutex_);
  for (;;) {
    while (!stopped_ && next_made_ >= next_out_ + depth_) room_.wait(lock);
    if (stopped_) return;
    const std::int64_t number = next_made_++;
    lock.unlock();
    Outcome outcome = outcome_of(number);
    lock.lock();
    outcomes_.emplace(number, std::move(outcome));
    ready_.notify_one();
  }
}

template <typename T>
typename Prefetcher<T>::Outcome Prefetcher<T>::outcome_of(std::int64_t number) {
  Outcome outcome;
  try {
    outcome.item.emplace(make_(number));
  } catch (...) {
    outcome.error = std::current_exception();
  }
  return outcome;
}

template <typename T>
void Prefetcher<T>::stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace tpudist
