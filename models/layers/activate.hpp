#pragma once

#include <ATen/core/Tensor.h>

#include "models/layers/activation.hpp"
#include "models/operators/backend.hpp"

namespace tpudist {

// Applies an activation to every element of the rows of a plan [M, rows, C], in blocks. leaky_relu
// has slope 0.01, leaky_relu_0.2 has 0.2 (the default of TensorFlow), elu alpha 1.
at::Tensor activate_rows(const at::Tensor& x, Activation activation, const Backend& backend);

}  // namespace tpudist
