#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "models/operators/device_arrays.hpp"
#include "models/operators/device_operators.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// Where a composed network computes: by default on the CPU, by its own operators.
struct DeviceContext {
  at::Device device = at::kCPU;
  // Makes the operators of a unit whose arrays were uploaded to `device`; null: the CPU's.
  std::unique_ptr<const DeviceOperators> (*make_operators)(DeviceArrays arrays) = nullptr;

  bool has_operators() const { return make_operators != nullptr; }
};

}  // namespace tpudist
