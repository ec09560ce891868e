#pragma once

namespace tpudist {

// Makes LibTorch keep the memory of large tensors on the CPU for the next ones, because fresh pages
// cost as much as computing on them (core/buffer_cache.hpp). It replaces LibTorch's allocator of the whole
// process: only a program's main function may call it. Small tensors go to the C library as before.
void keep_tensor_memory();

}  // namespace tpudist
