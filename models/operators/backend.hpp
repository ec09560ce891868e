#pragma once

#include "core/thread_pool.hpp"

namespace tpudist {

class DeviceOperators;

// Who computes the operators of a call: the threads of a pool, or a device where there is one. Made of
// a pool alone it means the CPU. Borrows both.
struct Backend {
  Backend(ThreadPool& pool, const DeviceOperators* device = nullptr) : pool(pool), device(device) {}
  ThreadPool& pool;
  const DeviceOperators* device;
};

}  // namespace tpudist
