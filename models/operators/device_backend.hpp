#pragma once

#include <memory>

#include "models/kernels/precision.hpp"
#include "models/operators/backend.hpp"
#include "models/operators/device_arrays.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// Makes the operators of a device: the project's CUDA kernels, ATen's products and functions of rows, on
// the current stream of the device that tensors lie on. `arrays` must have been uploaded to that device;
// operators throw Error for a matrix, index or group that is not among them. Nothing is atomic.
// `precision`: of the operands of products in float32.
// Tests run the kernels on the CPU: then
// tensors and arrays lie there. A program that calls this must be linked with the kernels, which nvcc
// or tests/cuda_emulation makes.
std::unique_ptr<const Backend> make_device_backend(DeviceArrays arrays, Precision precision);

}  // namespace tpudist
