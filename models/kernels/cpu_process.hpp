#pragma once

#include <string>

#include "models/kernels/precision.hpp"

namespace tpudist {

// One line for what the results of a network of this precision depend on, besides the program: two
// processes of one program with the same line compute the same bits. In float32 and tf32 all x86-64
// CPUs with fused multiply-adds have one line, whatever vectors they have; the C library counts,
// because its functions of doubles do. bf16 also depends on whether the CPU has dot products of it.
//
// The environment variable TPUDIST_CPU, `avx2` or `plain` (at most SSE2), restricts the process to
// the vectors of such a CPU, with the same bits in float32. Throws ConfigError if it has another
// value, or cannot be followed.
std::string cpu_kernels(Precision precision);

// The vectors of this CPU that kernels use: "avx512f", "avx2" or "baseline".
const char* cpu_vectors();

// The version of LibTorch, such as "2.11.0".
std::string libtorch_version();

// Makes ATen run only in the calling thread: parallelism comes from the project's own thread pool.
// For main and as `on_thread_start` of every thread pool. Repeated calls in a thread have no effect.
void use_one_thread_per_worker();

// Makes LibTorch keep the memory of large CPU tensors for reuse, because fresh pages cost as much
// as computing on them (core/buffer_cache.hpp). It replaces LibTorch's allocator for the whole
// process, so only a program's main function may call it. Small tensors still use the C library.
void keep_tensor_memory();

}  // namespace tpudist
