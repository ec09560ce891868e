#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace tpudist {

// A fixed set of threads that share loops. `parallel_for` may be called within a task of the same
// pool. The caller works on its own loop, and idle threads help with the innermost (most recent)
// loop that still has indices. So one unit keeps all cores busy while several units run side by
// side. Which thread runs which index is not fixed; results must not depend on it. Thread-safe.
class ThreadPool {
 public:
  // `threads` counts the calling thread: a pool of 1 starts none. `on_thread_start` runs first in
  // every started thread (not in the caller).
  explicit ThreadPool(int threads, std::function<void()> on_thread_start = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Runs body(0) ... body(count - 1), each once, and returns when all are done. After an exception
  // no new index is started; when all started calls have ended, the exception of the lowest index
  // is rethrown.
  void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Marks this thread as one whose results are needed later: threads of a ThreadPool help with its
// loops, and the loops inside them, one chunk at a time and only while no other loop has indices.
void mark_background_thread();

// From now on this thread increments `counter` after every few iterations of a thread pool's loop,
// so that other threads can see progress. The counter must outlive the thread's last loop. Null:
// stop counting.
void count_finished_work(std::atomic<std::uint64_t>* counter);

}  // namespace tpudist
