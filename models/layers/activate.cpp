#include "models/layers/layer.hpp"

#include <ATen/ATen.h>

#include <optional>

#include "models/kernels/row_functions.hpp"
#include "models/operators/operators.hpp"
#include "models/operators/planes.hpp"

namespace tpudist {
namespace {

// The activations whose bits in LibTorch depend on the CPU, in float32.
struct OwnActivation {
  void (*values)(const float* x, std::int64_t n, float* y);
  void (*gradient)(const float* x, const float* d_y, std::int64_t n, float* d_x);
};

std::optional<OwnActivation> own(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return OwnActivation{gelu_values, gelu_gradient};
    case Activation::gelu_tanh:
      return OwnActivation{gelu_tanh_values, gelu_tanh_gradient};
    case Activation::silu:
      return OwnActivation{silu_values, silu_gradient};
    case Activation::elu:
      return OwnActivation{elu_values, elu_gradient};
    default:
      return std::nullopt;
  }
}

void activate(Activation activation, const at::Tensor& x, at::Tensor& y) {
  const auto cpu = own(activation);
  if (cpu && for_float_planes(x, [&](std::int64_t m, std::int64_t count) {
        cpu->values(plane<float>(x, m), count, mutable_plane<float>(y, m));
      }))
    return;
  switch (activation) {
    case Activation::none:
      y.copy_(x);
      return;
    case Activation::relu:
      at::clamp_min_out(y, x, 0);
      return;
    case Activation::leaky_relu:
      at::leaky_relu_out(y, x, 0.01);
      return;
    case Activation::gelu:
      at::gelu_out(y, x, "none");
      return;
    case Activation::gelu_tanh:
      at::gelu_out(y, x, "tanh");
      return;
    case Activation::silu:
      at::silu_out(y, x);
      return;
    case Activation::elu:
      at::elu_out(y, x);
      return;
    case Activation::leaky_relu_02:
      at::leaky_relu_out(y, x, 0.2);
      return;
  }
}

// Writes d loss / d x into d_x from x and d loss / d y of activate().
void differentiate(Activation activation, const at::Tensor& x, const at::Tensor& d_y,
                   at::Tensor& d_x) {
  const auto cpu = own(activation);
  if (cpu && for_float_planes(x, [&](std::int64_t m, std::int64_t count) {
        cpu->gradient(plane<float>(x, m), plane<float>(d_y, m), count,
                      mutable_plane<float>(d_x, m));
      }))
    return;
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
    case Activation::leaky_relu_02:
      at::leaky_relu_backward_out(d_x, d_y, x, 0.2, false);
      return;
  }
}

}  // namespace

at::Tensor activate_rows(const at::Tensor& x, Activation activation, const Backend& backend) {
  if (activation == Activation::none) return x;
  return map_rows(
      [activation](const auto& rows, at::Tensor& y) { activate(activation, rows[0], y); },
      [activation](const auto& rows, const at::Tensor& d_y, auto& d_rows) {
        if (d_rows[0].defined()) differentiate(activation, rows[0], d_y, d_rows[0]);
      },
      {x}, x.size(2), backend);
}

}  // namespace tpudist
