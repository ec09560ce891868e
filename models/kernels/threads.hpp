#pragma once

namespace tpudist {

// Makes ATen and its BLAS run only in the calling thread: parallelism comes from the project's own
// thread pool, and the bits of a GEMM must not depend on a number of threads. For main and as
// `on_thread_start` of every thread pool. gemm() does so itself in a thread that has not called it.
// Repeated calls in a thread have no effect.
void use_one_thread_per_worker();

}  // namespace tpudist
