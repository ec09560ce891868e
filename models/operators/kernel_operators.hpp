#pragma once

#include <memory>

#include "models/operators/device_arrays.hpp"
#include "models/operators/device_operators.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// Makes the operators of the project's CUDA kernels, on the current stream of the device that tensors
// lie on. `arrays` must have been uploaded to that device. Tests run the kernels on the CPU: then
// tensors and arrays lie there. A program that calls this must be linked with the kernels, which nvcc
// or tests/cuda_emulation makes.
std::unique_ptr<const DeviceOperators> make_kernel_operators(DeviceArrays arrays);

}  // namespace tpudist
