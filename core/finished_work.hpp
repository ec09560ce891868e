#pragma once

#include <atomic>
#include <cstdint>

namespace tpudist {

// Counts in `counter`, from now on, the loop iterations that this thread finishes in thread pools,
// a few at a time, so that other threads can see progress. The counter must outlive the thread's
// last loop. Null: stop counting.
void count_finished_work(std::atomic<std::uint64_t>* counter);

}  // namespace tpudist
