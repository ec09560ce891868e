#pragma once

// TPUDIST_LAUNCH(kernel, grid, block, stream, arguments...): kernel<<<grid, block, 0, stream>>>
// (arguments...) under nvcc. A kernel compiled as C++ runs on the CPU (tests/cuda_emulation); a
// fake of CUDA brings its own macro. `kernel`: a name or function pointer.
#if defined(__CUDACC__)
#define TPUDIST_LAUNCH(kernel, grid, block, stream, ...) \
  kernel<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__)
#elif !defined(TPUDIST_LAUNCH)
#define TPUDIST_LAUNCH(kernel, grid, block, stream, ...) \
  emulation::launch(kernel, grid, block, stream, __VA_ARGS__)
#endif
