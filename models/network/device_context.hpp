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
  // Makes the backend of a unit whose arrays were uploaded to `device`; null: that of the CPU.
  std::unique_ptr<const Backend> (*make_backend)(DeviceArrays arrays,
                                                 Precision precision) = nullptr;

  bool is_device() const { return make_backend != nullptr; }
};

}  // namespace tpudist
