#pragma once

#include <mutex>

// Annotations of what a mutex guards and which functions need it locked, for Clang's thread-safety
// analysis (preset thread_safety). Other compilers ignore them. The analysis looks at one function
// at a time, not at constructors and destructors. `&Outer::mutex_` means the mutex of any Outer.
#ifdef __clang__
#define TPUDIST_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define TPUDIST_THREAD_SAFETY(attribute)
#endif
#define TPUDIST_CAPABILITY TPUDIST_THREAD_SAFETY(capability("mutex"))
#define TPUDIST_SCOPED_CAPABILITY TPUDIST_THREAD_SAFETY(scoped_lockable)
#define TPUDIST_GUARDED_BY(mutex) TPUDIST_THREAD_SAFETY(guarded_by(mutex))
#define TPUDIST_REQUIRES(mutex) TPUDIST_THREAD_SAFETY(requires_capability(mutex))
#define TPUDIST_EXCLUDES(mutex) TPUDIST_THREAD_SAFETY(locks_excluded(mutex))
#define TPUDIST_ACQUIRE(...) TPUDIST_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define TPUDIST_RELEASE() TPUDIST_THREAD_SAFETY(release_capability())
#define TPUDIST_UNCHECKED TPUDIST_THREAD_SAFETY(no_thread_safety_analysis)

namespace tpudist {

// The mutex of the standard library, with annotations.
class TPUDIST_CAPABILITY Mutex : public std::mutex {
 public:
  void lock() TPUDIST_ACQUIRE() { std::mutex::lock(); }
  void unlock() TPUDIST_RELEASE() { std::mutex::unlock(); }
};

// Holds a mutex for its lifetime, except between `unlock` and `lock`. Write a wait on a
// std::condition_variable as a loop: the analysis does not look into lambdas.
class TPUDIST_SCOPED_CAPABILITY MutexLock : public std::unique_lock<std::mutex> {
 public:
  explicit MutexLock(Mutex& mutex) TPUDIST_ACQUIRE(mutex) : std::unique_lock<std::mutex>(mutex) {}
  ~MutexLock() TPUDIST_RELEASE() {}
  void lock() TPUDIST_ACQUIRE() { std::unique_lock<std::mutex>::lock(); }
  void unlock() TPUDIST_RELEASE() { std::unique_lock<std::mutex>::unlock(); }
};

}  // namespace tpudist
