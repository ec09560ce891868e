#include "models/layers/activate.hpp"

#include <ATen/ATen.h>

#include "models/operators/map_rows.hpp"

namespace tpudist {
namespace {

// Writes d loss / d x into d_x from x and d loss / d activate(x, activation).
void differentiate(Activation activation, const at::Tensor& x, const at::Tensor& d_y,
                   at::Tensor& d_x) {
  switch (activation) {
    case Activation::none:
      d_x.copy_(d_y);
      return;
    case Activation::relu:
      at::threshold_backward_out(d_x, d_y, x, 0);
      return;
    case Activation::leaky_relu:
      at::leaky_relu_backward_out(d_x, d_y, x, 0.01, false);
      return;
    case Activation::gelu:
      at::gelu_backward_out(d_x, d_y, x, "none");
      return;
    case Activation::gelu_tanh:
      at::gelu_backward_out(d_x, d_y, x, "tanh");
      return;
    case Activation::silu:
      at::silu_backward_out(d_x, d_y, x);
      return;
    case Activation::elu:
      at::elu_backward_out(d_x, d_y, 1, 1, 1, false, x);
      return;
  }
}

}  // namespace

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
      [activation](const auto& rows, const auto&) { return activate(rows[0], activation); },
      [activation](const auto& rows, const at::Tensor& d_y, auto& d_rows) {
        if (d_rows[0].defined()) differentiate(activation, rows[0], d_y, d_rows[0]);
      },
      {x}, backend);
}

}  // namespace tpudist
