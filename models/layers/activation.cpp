#include "models/layers/activation.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace tpudist {

const std::vector<std::string>& activation_names() {
  static const std::vector<std::string> names = {
      "none", "relu", "leaky_relu", "gelu", "gelu_tanh", "silu", "elu", "leaky_relu_0.2"};
  return names;
}

Activation activation_of(const std::string& name) {
  const auto found = std::ranges::find(activation_names(), name);
  if (found == activation_names().end())
    throw Error(ErrorKind::failed, "there is no activation " + name);
  return static_cast<Activation>(found - activation_names().begin());
}

}  // namespace tpudist
