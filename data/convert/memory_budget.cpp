#include "data/convert/memory_budget.hpp"

#include <malloc.h>

#include <algorithm>

namespace tpudist {

MemoryBudget::MemoryBudget(std::uint64_t bytes) : bytes_(bytes) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

MemoryBudget::Share::Share(MemoryBudget& budget, std::uint64_t bytes)
    : budget_(budget), bytes_(std::min(bytes, budget.bytes_)) {
  MutexLock lock(budget_.mutex_);
  while (budget_.held_ + bytes_ > budget_.bytes_) budget_.freed_.wait(lock);
  budget_.held_ += bytes_;
}

MemoryBudget::Share::~Share() {
  const MutexLock lock(budget_.mutex_);
  budget_.held_ -= bytes_;
  budget_.freed_.notify_all();
}

}  // namespace tpudist
