#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace tpudist {

// Makes items 'first', 'first + 1', ... in background threads and hands them out in order of their number (a ticket), whoever is ready first. At most `depth` items
// are made or waiting at any time, so memory is bounded by depth items. An exception of `make` is rethrown by the `next` that would have returned
// its item. The destructor stops the threads. `next` is called from one thread.
template <typename T>
class Prefetcher {
 public:
  Prefetcher(std::int64_t first, int depth, int threads, std::function<T(std::int64_t)> make);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  T next();
  // Total time that `next` has waited.
  std::chrono::duration<double> waited() const { return waited_; }

 private:
  struct Outcome;
  void work();

  // Members: see implementation below.
  std::chrono::duration<double> waited_{};
};

}  // namespace tpudist
