#pragma once

#include <string>

namespace tpudist {

// Which versions of the numerical kernels this process runs on its CPU, as one line: the row
// kernels, the matrix products in float32 and bf16, and the settings of the BLAS that change what it
// computes. Two processes of one program with the same line compute the same bits.
//
// The environment variable TPUDIST_CPU, `avx2` or `plain` (nothing wider than SSE2), holds the process to
// what it runs on a CPU with no more: row kernels of that width, and products by the BLAS. Throws
// ConfigError where it has another value, or cannot be followed.
std::string cpu_kernels();

}  // namespace tpudist
