#pragma once

#include <atomic>

namespace tpudist {

// Set when a call of CUDA or NCCL has failed in this process. Work that is queued on the GPU may
// never end then, so threads must not wait for it any more: the process is about to end.
inline std::atomic<bool> device_has_failed = false;

}  // namespace tpudist
