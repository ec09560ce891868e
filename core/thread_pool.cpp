#include "core/thread_pool.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <thread>
#include <vector>

#include "core/mutex.hpp"

namespace tpudist {
namespace {

// How long a thread looks for work before it sleeps: loops of tens of microseconds follow each
// other closely, and a wake-up costs as much as such a loop.
constexpr std::chrono::microseconds kSpin{15};

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <typename Ready>
void spin_until(const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  while (!ready() && std::chrono::steady_clock::now() < end) pause_briefly();
}

// Whether this thread has called mark_background_thread.
thread_local bool background_thread = false;

// One call of parallel_for. Lives on the caller's stack: the caller leaves only when `helpers` is
// 0.
struct Loop {
  Loop(std::int64_t count, std::int64_t chunk, const std::function<void(std::int64_t)>& body,
       Loop* parent, const void* pool)
      : count(count),
        chunk(chunk),
        body(body),
        parent(parent),
        pool(pool),
        background(parent ? parent->background : background_thread) {}

  bool has_indices() const { return next.load(std::memory_order_relaxed) < count; }

  bool descends_from(const Loop& other) const {
    for (const Loop* loop = parent; loop; loop = loop->parent) {
      if (loop == &other) return true;
    }
    return false;
  }

  void record_failure(std::int64_t index) {
    failed.store(true, std::memory_order_relaxed);
    next.store(count);  // nobody starts another chunk
    const MutexLock lock(failure_mutex);
    if (index >= failed_index) return;
    failed_index = index;
    failure = std::current_exception();
  }

  // Runs indices until none is left; with `once`, only one chunk.
  void work(bool once = false);

  const std::int64_t count, chunk;
  const std::function<void(std::int64_t)>& body;
  Loop* const parent;  // the loop whose task called parallel_for, of any pool; outlives this one
  const void* const pool;
  const bool background;  // inner loops inherit it

  std::atomic<std::int64_t> next{0};
  std::atomic<bool> failed{false};
  std::atomic<int> helpers{0};  // changed under the pool's mutex

  bool caller_sleeps = false;            // under the pool's mutex
  std::condition_variable caller_wakes;  // with the pool's mutex

  Mutex failure_mutex;
  std::int64_t failed_index TPUDIST_GUARDED_BY(failure_mutex) =
      std::numeric_limits<std::int64_t>::max();
  std::exception_ptr failure TPUDIST_GUARDED_BY(failure_mutex);
};

// The loop whose task this thread is running.
thread_local Loop* current_loop = nullptr;

// The counter given to count_finished_work in this thread.
thread_local std::atomic<std::uint64_t>* finished_work = nullptr;

void note_finished_work() {
  if (finished_work) finished_work->fetch_add(1, std::memory_order_relaxed);
}

void Loop::work(bool once) {
  Loop* const outer = current_loop;
  current_loop = this;
  for (bool more = true; more; more = !once) {
    const std::int64_t begin = next.fetch_add(chunk);
    if (begin >= count) break;
    const std::int64_t end = std::min(begin + chunk, count);
    for (std::int64_t index = begin; index < end; ++index) {
      if (failed.load(std::memory_order_relaxed)) break;
      try {
        body(index);
      } catch (...) {
        record_failure(index);
      }
    }
    note_finished_work();
  }
  current_loop = outer;
}

}  // namespace

struct ThreadPool::Impl {
  ~Impl() { stop(); }

  void start_threads(int count, std::function<void()> on_start);
  void stop();
  void run_thread(const std::function<void()>& on_start);
  void run(Loop& loop);

  Loop* innermost(const Loop* within) TPUDIST_REQUIRES(mutex);
  void help(Loop& loop) TPUDIST_REQUIRES(mutex);  // releases it while it works
  void open(Loop& loop) TPUDIST_REQUIRES(mutex);
  void close(Loop& loop) TPUDIST_REQUIRES(mutex);

  int size = 1;
  std::vector<std::thread> threads;

  Mutex mutex;
  std::vector<Loop*> open_loops TPUDIST_GUARDED_BY(mutex);  // in the order of their calls
  std::atomic<std::size_t> open_count{0};  // their number, to be read without the mutex
  int sleepers TPUDIST_GUARDED_BY(mutex) = 0;
  int started TPUDIST_GUARDED_BY(mutex) = 0;
  bool stopping TPUDIST_GUARDED_BY(mutex) = false;
  std::exception_ptr start_failure TPUDIST_GUARDED_BY(mutex);
  std::condition_variable work, all_started;
};

void ThreadPool::Impl::start_threads(int count, std::function<void()> on_start) {
  try {
    for (int i = 0; i < count; ++i)
      threads.emplace_back([this, on_start] { run_thread(on_start); });
  } catch (...) {
    stop();
    throw;
  }
  MutexLock lock(mutex);
  while (started < count) all_started.wait(lock);
  const std::exception_ptr failure = start_failure;
  if (!failure) return;
  lock.unlock();
  stop();
  std::rethrow_exception(failure);
}

void ThreadPool::Impl::stop() {
  {
    const MutexLock lock(mutex);
    stopping = true;
    work.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  threads.clear();
}

void ThreadPool::Impl::run_thread(const std::function<void()>& on_start) {
  std::exception_ptr failure;
  try {
    if (on_start) on_start();
  } catch (...) {
    failure = std::current_exception();
  }

  MutexLock lock(mutex);
  if (failure && !start_failure) start_failure = failure;
  ++started;
  all_started.notify_one();
  while (!stopping) {
    if (Loop* loop = innermost(nullptr)) {
      help(*loop);
      continue;
    }
    lock.unlock();
    spin_until([&] { return open_count.load(std::memory_order_relaxed) > 0; });
    lock.lock();
    ++sleepers;
    while (!stopping && open_loops.empty()) work.wait(lock);
    --sleepers;
  }
}

// The most recent open loop with indices left, else the oldest loop of a background thread. With
// `within`: only loops that tasks of `within` opened.
Loop* ThreadPool::Impl::innermost(const Loop* within) {
  Loop* background = nullptr;
  for (std::size_t i = open_loops.size(); i-- > 0;) {
    Loop* loop = open_loops[i];
    if (!loop->has_indices()) {
      close(*loop);
    } else if (!within || loop->descends_from(*within)) {
      if (!loop->background) return loop;
      background = loop;
    }
  }
  return background;
}

void ThreadPool::Impl::help(Loop& loop) {
  loop.helpers.fetch_add(1, std::memory_order_relaxed);
  mutex.unlock();
  loop.work(loop.background);  // a more urgent loop may have opened meanwhile
  mutex.lock();
  if (!loop.has_indices()) close(loop);
  // This thread holds the mutex, which the caller needs to leave: the loop lives until this ends.
  if (loop.helpers.fetch_sub(1, std::memory_order_release) == 1 && loop.caller_sleeps) {
    loop.caller_wakes.notify_one();
  }
}

void ThreadPool::Impl::open(Loop& loop) {
  open_loops.push_back(&loop);
  open_count.store(open_loops.size(), std::memory_order_relaxed);
  const std::int64_t wanted = (loop.count - 1) / loop.chunk;
  if (wanted >= sleepers) {
    work.notify_all();
  } else {
    for (std::int64_t i = 0; i < wanted; ++i) work.notify_one();
  }
  // Callers that wait for helpers of an outer loop are idle as well.
  for (Loop* outer = loop.parent; outer; outer = outer->parent) {
    if (outer->pool == this && outer->caller_sleeps) outer->caller_wakes.notify_one();
  }
}

void ThreadPool::Impl::close(Loop& loop) {
  const auto at = std::find(open_loops.begin(), open_loops.end(), &loop);
  if (at != open_loops.end()) open_loops.erase(at);
  open_count.store(open_loops.size(), std::memory_order_relaxed);
}

void ThreadPool::Impl::run(Loop& loop) {
  MutexLock lock(mutex);
  open(loop);
  lock.unlock();
  loop.work();

  const auto alone = [&] { return loop.helpers.load(std::memory_order_acquire) == 0; };
  lock.lock();
  close(loop);
  while (!alone()) {
    // A helper may have opened loops inside this one; helping there cannot delay this loop. The
    // caller does not help other loops, whose tasks could take much longer.
    if (Loop* inner = innermost(&loop)) {
      help(*inner);
      continue;
    }
    lock.unlock();
    spin_until(alone);
    lock.lock();
    loop.caller_sleeps = true;
    while (!alone() && !innermost(&loop)) loop.caller_wakes.wait(lock);
    loop.caller_sleeps = false;
  }
}

void mark_background_thread() {
  background_thread = true;
}

void count_finished_work(std::atomic<std::uint64_t>* counter) {
  finished_work = counter;
}

ThreadPool::ThreadPool(int threads, std::function<void()> on_thread_start)
    : impl_(std::make_unique<Impl>()) {
  impl_->size = std::max(threads, 1);
  impl_->start_threads(impl_->size - 1, std::move(on_thread_start));
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const {
  return impl_->size;
}

void ThreadPool::parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  if (count <= 0) return;
  if (count == 1 || impl_->size == 1) {
    for (std::int64_t index = 0; index < count; ++index) {
      body(index);
      note_finished_work();
    }
    return;
  }
  // Long loops of short calls take several indices at a time.
  const std::int64_t chunk = std::max<std::int64_t>(1, count / (std::int64_t{64} * impl_->size));
  Loop loop(count, chunk, body, current_loop, impl_.get());
  impl_->run(loop);
  if (!loop.failed) return;
  const MutexLock lock(loop.failure_mutex);
  std::rethrow_exception(loop.failure);
}

}  // namespace tpudist
