#pragma once

#include <cuda_runtime_api.h>

#include <source_location>
#include <string_view>

namespace tpudist {

// Throws DistError with CUDA's own text, the name of the call and its place in the source, unless
// it succeeded.
void check_cuda(cudaError_t code, std::string_view call,
                std::source_location place = std::source_location::current());

}  // namespace tpudist
