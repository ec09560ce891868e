#pragma once

namespace tpudist {

// Makes LibTorch keep the memory of large CPU tensors for reuse, because fresh pages cost as much
// as computing on them (core/buffer_cache.hpp). It replaces LibTorch's allocator for the whole
// process, so only a program's main function may call it. Small tensors still use the C library.
void keep_tensor_memory();

}  // namespace tpudist
