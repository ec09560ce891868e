#pragma once

#include <memory>

#include "models/executors/executor.hpp"
#include "models/network/network_config.hpp"

namespace tpudist {

// Makes the executor of networks that are composed of layers, on the CPU: one member at a time, whose
// operators share their blocks of rows over the threads of the pool. With `recompute` it keeps the
// states between the blocks only and runs each block again in the backward pass. `pool` must outlive
// it.
std::unique_ptr<Executor> make_composed_executor(const NetworkConfig& config,
                                                 std::int64_t config_features, bool recompute,
                                                 ThreadPool& pool);

// The parameters of such a network.
ParameterTable composed_parameters(const NetworkConfig& config, std::int64_t config_features);

}  // namespace tpudist
