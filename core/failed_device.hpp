#pragma once

#include <atomic>

namespace tpudist {

// Set when a call of CUDA or NCCL has failed in this process. The GPU may then never finish its
// queued work, so no thread may wait for the GPU: the process is about to end.
inline std::atomic<bool> device_has_failed = false;

}  // namespace tpudist
