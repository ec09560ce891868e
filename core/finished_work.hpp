#pragma once

#include <atomic>
#include <cstdint>

namespace tpudist {

// From now on, what this thread finishes of the loops of thread pools is counted in `counter`, a few
// calls of a body at a time, so that others can see whether it gets on. The counter outlives the
// thread's last loop; null: nobody counts.
void count_finished_work(std::atomic<std::uint64_t>* counter);

}  // namespace tpudist
