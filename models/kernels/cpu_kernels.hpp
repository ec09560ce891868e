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

}  // namespace tpudist
