#pragma once

namespace tpudist {

// The calling thread gives way to the others from here on: where cores are short, it gets a tenth of
// what another thread gets (nice 10; a thread that has a lower priority already keeps it). Linux has one
// value for each thread. Nothing depends on it, so that a system that refuses is no error.
void give_way_to_others();

}  // namespace tpudist
