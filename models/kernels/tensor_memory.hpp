#pragma once

namespace tpudist {

// Makes LibTorch keep the memory of large tensors on the CPU for the next ones, because fresh pages
// cost as much as computing on them (core/buffer_cache.hpp). It holds for the whole process, from the
// first call on. Small tensors go to the C library as before.
void keep_tensor_memory();

}  // namespace tpudist
