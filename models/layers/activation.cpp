#include "models/layers/activation.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/error.hpp"
#include "models/operators/map_rows.hpp"

namespace tpudist {

const std::vector<std::string>& activation_names() {
  static const std::vector<std::string> names = {"none",      "relu", "leaky_relu", "gelu",
                                                 "gelu_tanh", "silu", "elu"};
  return names;
}

Activation activation_of(const std::string& name) {
  const auto found = std::ranges::find(activation_names(), name);
  if (found == activation_names().end())
    throw Error(ErrorKind::failed, "there is no activation " + name);
  return static_cast<Activation>(found - activation_names().begin());
}

at::Tensor activate(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return at::relu(x);
    case Activation::leaky_relu:
      return at::leaky_relu(x, 0.01);
    case Activation::gelu:
      return at::gelu(x, "none");
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::silu:
      return at::silu(x);
    case Activation::elu:
      return at::elu(x);
  }
  return x;
}

at::Tensor activate_rows(const at::Tensor& x, Activation activation, const Backend& backend) {
  if (activation == Activation::none) return x;
  return map_rows(
      [activation](const auto& rows, const auto&) { return activate(rows[0], activation); }, {x},
      {}, backend);
}

}  // namespace tpudist
