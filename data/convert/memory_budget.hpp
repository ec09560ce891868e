#pragma once

#include <condition_variable>
#include <cstdint>

#include "core/mutex.hpp"

namespace tpudist {

// Shares a number of bytes between threads. A thread that requests more than the free bytes waits
// for the others. A request larger than the whole budget is granted when nobody else holds a share.
// Thread-safe.
class MemoryBudget {
 public:
  // Also makes the C library return freed blocks of 1 MiB and more to the system at once. By
  // default the library keeps blocks per thread, and 16 threads hold four times what they use.
  explicit MemoryBudget(std::uint64_t bytes);

  // Holds a share until it is destroyed.
  class Share {
   public:
    Share(MemoryBudget& budget, std::uint64_t bytes);
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    MemoryBudget& budget_;
    const std::uint64_t bytes_;
  };

 private:
  const std::uint64_t bytes_;
  Mutex mutex_;
  std::uint64_t held_ TPUDIST_GUARDED_BY(mutex_) = 0;
  std::condition_variable freed_;
};

}  // namespace tpudist
