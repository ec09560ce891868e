#pragma once

namespace tpudist {

// Lowers the priority of the calling thread from here on (nice 10): where cores are short, it gets
// a tenth of another thread's time. A thread that has a lower priority already keeps it. Linux has
// one value per thread. Nothing depends on it, so a refusal by the system is no error.
void give_way_to_others();

}  // namespace tpudist
