#pragma once

#include <string>

namespace tpudist {

// One line with the versions of the numerical kernels that this process uses on its CPU: the row
// kernels, the matrix products in float32 and bf16, and the settings of the BLAS that change its
// results. Two processes of one program with the same line compute the same bits.
//
// The environment variable TPUDIST_CPU, `avx2` or `plain` (at most SSE2), restricts the process to
// the kernels of such a CPU: row kernels of that width, and products by the BLAS. Throws
// ConfigError if it has another value, or cannot be followed.
std::string cpu_kernels();

// The version of LibTorch, such as "2.11.0".
std::string libtorch_version();

// Makes ATen and its BLAS run only in the calling thread: parallelism comes from the project's own
// thread pool, and the bits of a GEMM must not depend on a number of threads. For main and as
// `on_thread_start` of every thread pool. gemm() does so itself in a thread that has not called it.
// Repeated calls in a thread have no effect.
void use_one_thread_per_worker();

// Makes LibTorch keep the memory of large CPU tensors for reuse, because fresh pages cost as much
// as computing on them (core/buffer_cache.hpp). It replaces LibTorch's allocator for the whole
// process, so only a program's main function may call it. Small tensors still use the C library.
void keep_tensor_memory();

}  // namespace tpudist
