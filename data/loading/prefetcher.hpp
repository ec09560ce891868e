#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace tpudist {

// Makes items `first`, `first + 1`, ... in background threads and hands them out in order of their
// number (a ticket), whoever is ready first. At most `depth` items are made or waiting at any time,
// so memory is bounded by depth items. `make` is called from several threads at once, once for each
// number. An exception of `make` is rethrown by the `next` that would have returned its item; the
// `next` after that goes on with the following item. The destructor waits for the calls of `make`
// that are under way, and no more are begun. `next` is called from one thread.
template <typename T>
class Prefetcher {
 public:
  // `depth` and `threads` below 1 count as 1; threads beyond `depth` would only wait and are left
  // out.
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
  Outcome outcome_of(std::int64_t number);
  void stop();

  const std::function<T(std::int64_t)> make_;
  const std::int64_t depth_;
  std::mutex mutex_;
  std::condition_variable room_, ready_;
  std::map<std::int64_t, Outcome> outcomes_;  // made and not yet handed out
  std::int64_t next_made_, next_out_;         // next_out_ <= next_made_ <= next_out_ + depth_
  bool stopped_ = false;
  std::chrono::duration<double> waited_{};
  std::vector<std::thread> threads_;
};

template <typename T>
Prefetcher<T>::Prefetcher(std::int64_t first, int depth, int threads,
                          std::function<T(std::int64_t)> make)
    : make_(std::move(make)), depth_(std::max(depth, 1)), next_made_(first), next_out_(first) {
  const int count = std::clamp(threads, 1, std::max(depth, 1));
  try {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {  // the system has no more threads: those already started must not outlive this
    stop();
    throw;
  }
}

template <typename T>
T Prefetcher<T>::next() {
  std::unique_lock lock(mutex_);
  const std::int64_t number = next_out_;
  if (!outcomes_.contains(number)) {
    const auto begin = std::chrono::steady_clock::now();
    ready_.wait(lock, [&] { return outcomes_.contains(number); });
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
  std::unique_lock lock(mutex_);
  for (;;) {
    room_.wait(lock, [&] { return stopped_ || next_made_ < next_out_ + depth_; });
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
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace tpudist
