#pragma once

#include <memory>

#include "models/executors/executor.hpp"

namespace tpudist {

// Makes the executor of the CPU: the project's own row kernels and BLAS. With `recompute` it keeps
// every other layer's states only (NetworkOptions). `layout` and `pool` must outlive it.
std::unique_ptr<Executor> make_cpu_executor(const NetworkLayout& layout, double output_scale,
                                            bool recompute, ThreadPool& pool);

}  // namespace tpudist
