#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "models/operators/backend.hpp"

namespace tpudist {

// Activations as PyTorch defines them.
enum class Activation { none, relu, leaky_relu, gelu, gelu_tanh, silu, elu };

// Their names in YAML, in the order of the enumerators.
const std::vector<std::string>& activation_names();
// Throws Error for a name that is not one of them.
Activation activation_of(const std::string& name);

// Applies one to every element. leaky_relu has slope 0.01, elu alpha 1.
at::Tensor activate(const at::Tensor& x, Activation activation);
// The same for the rows of a plan [rows, M, C], in blocks.
at::Tensor activate_rows(const at::Tensor& x, Activation activation, const Backend& backend);

}  // namespace tpudist
