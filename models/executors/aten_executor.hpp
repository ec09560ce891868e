#pragma once

#include <memory>

#include "models/executors/executor.hpp"

namespace tpudist {

// Makes the executor of ATen operators on a CUDA device; -1: on the CPU, for tests. It computes one
// member after the other. `replay`: as in NetworkOptions. `layout` must outlive it.
std::unique_ptr<Executor> make_aten_executor(const NetworkLayout& layout, double output_scale,
                                             int device_index, bool replay = false);

}  // namespace tpudist
