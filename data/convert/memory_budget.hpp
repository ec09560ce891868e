#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tpudist {

// Shares a number of bytes between threads: a thread that asks for more than is left waits for the
// others. Who asks for more than there is gets it when nobody else holds any. Thread-safe.
class MemoryBudget {
 public:
  // Also makes the C library give freed blocks of 1 MiB and more back to the system at once: left
  // to itself it keeps them, thread by thread, and 16 threads hold four times what they use.
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
  std::uint64_t held_ = 0;
  std::mutex mutex_;
  std::condition_variable freed_;
};

}  // namespace tpudist
