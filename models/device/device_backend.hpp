#pragma once

#include <memory>

#include "models/kernels/precision.hpp"
#include "models/operators/backend.hpp"
#include "models/operators/device_arrays.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// Makes the operators of a device: the project's CUDA kernels, and ATen's products and functions of
// rows. They run on the current stream of the device that holds the tensors. `arrays` must have
// been uploaded to that device; operators throw Error for a matrix, index or group that is not
// among them. `precision` is that of the operands of products in float32. No operator uses atomics.
// Tests run the kernels on the CPU, with tensors and arrays in host memory. A program that calls
// this must be linked with the kernels, which nvcc or tests/cuda_emulation compiles.
std::unique_ptr<const Backend> make_device_backend(DeviceArrays arrays, Precision precision);

}  // namespace tpudist
