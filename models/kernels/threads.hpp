#pragma once

namespace tpudist {

// Makes ATen and the BLAS beneath it run in the calling thread only: parallelism comes from the
// project's own thread pool, and the bits of a GEMM must not depend on a number of threads. For
// main and as `on_thread_start` of every thread pool. gemm() sees to it by itself in a thread that
// has not called it. A further call in a thread does nothing.
void use_one_thread_per_worker();

}  // namespace tpudist
