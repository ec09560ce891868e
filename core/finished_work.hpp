#pragma once

#include <atomic>
#include <cstdint>

namespace tpudist {

// From now on increments `counter` whenever this thread has finished a few iterations of a thread
// pool's loop, so that other threads can see progress. The counter must outlive the thread's last
// loop. Null: stop counting.
void count_finished_work(std::atomic<std::uint64_t>* counter);

}  // namespace tpudist
