#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "models/kernels/precision.hpp"
#include "models/operators/backend.hpp"
#include "models/operators/device_arrays.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// Where a composed network computes: by default on the CPU.
struct DeviceContext {
  at::Device device = at::kCPU;
  // Makes the backend of a unit whose arrays were uploaded to `device`; null: the CPU's backend.
  std::unique_ptr<const Backend> (*make_backend)(DeviceArrays arrays,
                                                 Precision precision) = nullptr;

  bool is_device() const { return make_backend != nullptr; }
};

// The context of a CUDA device, given by its index; -1: the CPU. Throws ConfigError for a device if
// the program was built without the project's CUDA kernels, or if the device lacks the precision.
// Keeps float32 products on devices in float32 (hold_to_fp32).
DeviceContext make_device_context(int device_index, Precision precision = Precision::fp32);

// Throws ConfigError if GPUs of this compute capability lack the precision.
void require_precision(Precision precision, int major, int minor);

// Turns TF32 off in LibTorch, whatever the environment says; products in tf32 say so in their own
// calls of cuBLAS. CUDA's libraries also read NVIDIA_TF32_OVERRIDE, perhaps before main: throws
// ConfigError if it is set, except to 0 for a precision other than tf32.
void hold_to_fp32(Precision precision = Precision::fp32);

}  // namespace tpudist
