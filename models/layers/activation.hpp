#pragma once

#include <string>
#include <vector>

namespace tpudist {

// Activations as PyTorch defines them. models/layers/activate.hpp applies them.
enum class Activation { none, relu, leaky_relu, gelu, gelu_tanh, silu, elu, leaky_relu_02 };

// Their names in YAML, in the order of the enumerators.
const std::vector<std::string>& activation_names();
// Throws Error for a name that is not one of them.
Activation activation_of(const std::string& name);

}  // namespace tpudist
