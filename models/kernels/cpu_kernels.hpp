#pragma once

#include <string>

namespace tpudist {

// Which versions of the numerical kernels this process runs on its CPU, as one line: the row
// kernels, the matrix products in float32 and bf16, and the settings of the BLAS that change what it
// computes. Two processes of one program with the same line compute the same bits.
std::string cpu_kernels();

}  // namespace tpudist
