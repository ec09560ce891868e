#ifndef TPUDIST_NO_CUDA

#include "dist/collectives/cuda_check.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "core/error.hpp"

namespace tpudist {

void check_cuda(cudaError_t code, std::string_view call, std::source_location place) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // forget it, so that it is not reported by the next call again
  throw DistError(fmt::format("{} failed: {} ({}:{})", call, cudaGetErrorString(code),
                              std::filesystem::path(place.file_name()).filename().string(),
                              place.line()));
}

}  // namespace tpudist

#endif
