#pragma once

#include <memory>

#include "models/network/executor.hpp"
#include "models/network/network_config.hpp"
#include "models/parameters/parameter_table.hpp"

namespace tpudist {

// Makes the executor of networks of fused layers on the CPU (models/network/fused_pass.hpp). With
// `recompute` it keeps the states of only every other layer (NetworkOptions). `pool` must outlive
// it.
std::unique_ptr<Executor> make_fused_executor(const NetworkConfig& config,
                                              const FeatureSchema& schema,
                                              const ParameterTable& table, bool recompute,
                                              ThreadPool& pool);

}  // namespace tpudist
