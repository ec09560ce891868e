#pragma once

// TPUDIST_LAUNCH(kernel, grid, block, stream, arguments...): kernel<<<grid, block, 0, stream>>>
// (arguments...) under nvcc. If the kernel is compiled as C++, its test runs it on the CPU
// (tests/cuda_emulation); a fake of CUDA brings its own macro. `kernel` is a name or a function pointer.
#if defined(__CUDACC__)
#define TPUDIST_LAUNCH(kernel, grid, block, stream, ...) \
  kernel<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__)
#elif !defined(TPUDIST_LAUNCH)
#define TPUDIST_LAUNCH(kernel, grid, block, stream, ...) \
  emulation::launch(kernel, grid, block, stream, __VA_ARGS__)
#endif
