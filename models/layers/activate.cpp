#include "models/layers/layer.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "models/kernels/row_functions.hpp"
#include "models/operators/operators.hpp"
#include "models/operators/planes.hpp"

namespace tpudist {
namespace {

// The activations whose bits in LibTorch depend on the CPU: in float32 and in double.
struct OwnActivation {
  void (*values)(const float* x, std::int64_t n, float* y);
  void (*gradient)(const float* x, const float* d_y, std::int64_t n, float* d_x);
  double (*value)(double x);
  double (*slope)(double x);
};

constexpr double kSlope = 1.5957691216057308, kCubic = 0.044715;  // of GELU's approximation

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double normal_cdf(double x) {
  return std::erfc(-x * 0.70710678118654752) / 2;
}
double tanh_gate(double x) {
  return sigmoid(kSlope * (x + kCubic * x * x * x));
}

const OwnActivation* own(Activation activation) {
  static constexpr OwnActivation gelu{
      gelu_values, gelu_gradient, [](double x) { return x * normal_cdf(x); },
      [](double x) { return normal_cdf(x) + x * std::exp(-x * x / 2) * 0.3989422804014327; }};
  static constexpr OwnActivation gelu_tanh{
      gelu_tanh_values, gelu_tanh_gradient, [](double x) { return x * tanh_gate(x); },
      [](double x) {
        const double gate = tanh_gate(x);
        return gate + x * kSlope * (1 + 3 * kCubic * x * x) * gate * (1 - gate);
      }};
  static constexpr OwnActivation silu{silu_values, silu_gradient,
                                      [](double x) { return x * sigmoid(x); },
                                      [](double x) {
                                        const double gate = sigmoid(x);
                                        return gate * (1 + x * (1 - gate));
                                      }};
  static constexpr OwnActivation elu{elu_values, elu_gradient,
                                     [](double x) { return x > 0 ? x : std::expm1(x); },
                                     [](double x) { return x > 0 ? 1.0 : std::exp(x); }};
  switch (activation) {
    case Activation::gelu:
      return &gelu;
    case Activation::gelu_tanh:
      return &gelu_tanh;
    case Activation::silu:
      return &silu;
    case Activation::elu:
      return &elu;
    default:
      return nullptr;
  }
}

void activate_on_cpu(const OwnActivation& own, const at::Tensor& x, at::Tensor& y) {
  for_planes(x, [&](std::int64_t m, std::int64_t count) {
    if (x.scalar_type() == at::kFloat) {
      own.values(plane<float>(x, m), count, mutable_plane<float>(y, m));
    } else {
      std::transform(plane<double>(x, m), plane<double>(x, m) + count, mutable_plane<double>(y, m),
                     own.value);
    }
  });
}

void differentiate_on_cpu(const OwnActivation& own, const at::Tensor& x, const at::Tensor& d_y,
                          at::Tensor& d_x) {
  for_planes(x, [&](std::int64_t m, std::int64_t count) {
    if (x.scalar_type() == at::kFloat) {
      own.gradient(plane<float>(x, m), plane<float>(d_y, m), count, mutable_plane<float>(d_x, m));
    } else {
      std::transform(plane<double>(x, m), plane<double>(x, m) + count, plane<double>(d_y, m),
                     mutable_plane<double>(d_x, m),
                     [&](double at, double d) { return d * own.slope(at); });
    }
  });
}

void activate(Activation activation, const at::Tensor& x, at::Tensor& y) {
  if (const OwnActivation* const cpu = x.is_cpu() ? own(activation) : nullptr)
    return activate_on_cpu(*cpu, x, y);
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
  if (const OwnActivation* const cpu = x.is_cpu() ? own(activation) : nullptr)
    return differentiate_on_cpu(*cpu, x, d_y, d_x);
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
