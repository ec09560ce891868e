#pragma once

#include <cuda_runtime_api.h>

#include <functional>

// A launch goes to its stream like a copy; the emulation runs the kernel when the stream gets there.

namespace tpudist::fake {
void queue_kernel(cudaStream_t stream, std::function<void()> run);

template <typename Kernel, typename... Arguments>
void launch(Kernel kernel, dim3 grid, dim3 block, cudaStream_t stream, Arguments... arguments) {
  if (!emulation::is_valid(grid, block)) {
    emulation::last_error = cudaErrorInvalidConfiguration;
    return;
  }
  queue_kernel(stream, [=] { emulation::launch(kernel, grid, block, nullptr, arguments...); });
}
}  // namespace tpudist::fake

#define TPUDIST_LAUNCH(kernel, grid, block, stream, ...) \
  tpudist::fake::launch(kernel, grid, block, stream, __VA_ARGS__)
