#pragma once

#include <ATen/core/Tensor.h>

#include "models/layers/activation.hpp"
#include "models/operators/backend.hpp"

namespace tpudist {

// Applies an activation to every element. leaky_relu has slope 0.01, elu alpha 1.
at::Tensor activate(const at::Tensor& x, Activation activation);
// The same for the rows of a plan [rows, M, C], in blocks.
at::Tensor activate_rows(const at::Tensor& x, Activation activation, const Backend& backend);

}  // namespace tpudist
