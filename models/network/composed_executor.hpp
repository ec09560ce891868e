#pragma once

#include <memory>

#include "models/network/device_context.hpp"
#include "models/network/executor.hpp"
#include "models/network/network_config.hpp"

namespace tpudist {

// Makes the executor of networks that are composed of layers. On the CPU it computes one member at
// a time; the operators split their blocks of rows over the threads of the pool. On a device it
// computes all members of a call together. With `recompute` it keeps only the states between the
// blocks, and runs each block again in the backward pass. `pool` must outlive it.
std::unique_ptr<Executor> make_composed_executor(const NetworkConfig& config,
                                                 const FeatureSchema& schema, bool recompute,
                                                 ThreadPool& pool, const DeviceContext& place = {});

// The place of a CUDA device, given by its index; -1: the CPU. Throws ConfigError for a device if
// the program was built without the project's CUDA kernels, or if it lacks the precision. Holds
// products in float32 on devices to float32 (hold_to_fp32).
DeviceContext place_on(int device_index, Precision precision = Precision::fp32);

// Throws ConfigError where GPUs of this compute capability lack the precision.
void require_precision(Precision precision, int major, int minor);

// Turns TF32 off in LibTorch, whatever the environment says: products in tf32 turn it on for
// themselves. CUDA's libraries themselves read NVIDIA_TF32_OVERRIDE, perhaps before main: throws
// ConfigError if it is set, unless to 0 for a precision other than tf32.
void hold_to_fp32(Precision precision = Precision::fp32);

// The parameters of such a network.
ParameterTable composed_parameters(const NetworkConfig& config, const FeatureSchema& schema);

}  // namespace tpudist
