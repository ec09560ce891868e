#include "models/operators/softmax_gate.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "models/kernels/threads.hpp"
#include "models/operators/device_operators.hpp"
#include "models/operators/saved_state.hpp"

namespace tpudist {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Shape {
  explicit Shape(const at::Tensor& x) : members(x.size(1)), channels(x.size(2)) {}
  std::int64_t members, channels;
  std::int64_t width() const { return members * channels; }
};

// Writes the softmax of the group's rows into `share`.
template <typename T>
void softmax(const RowGroups& groups, std::int64_t group, const Shape& shape, const T* x,
             const T* temperature, T* share) {
  const Csr& rows = groups.rows;
  const std::int64_t begin = rows.begin[group], count = rows.begin[group + 1] - begin,
                     width = shape.width();
  const auto row = [&](std::int64_t i) { return rows.source[begin + i] * width; };
  std::vector<T> top(x + row(0), x + row(0) + width), inverse(width);
  for (std::int64_t c = 0; c < width; ++c) inverse[c] = 1 / temperature[c / shape.channels];
  // The x of the largest logit: training may turn a temperature negative.
  for (std::int64_t i = 1; i < count; ++i) {
    for (std::int64_t c = 0; c < width; ++c) {
      const T value = x[row(i) + c];
      top[c] = inverse[c] < 0 ? std::min(top[c], value) : std::max(top[c], value);
    }
  }
  // The exponentials of the whole group at once: one call of ATen's vectorised function.
  at::Tensor power = at::empty({count * width}, c10::CppTypeToScalarType<T>::value);
  T* const values = power.mutable_data_ptr<T>();
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t c = 0; c < width; ++c)
      values[i * width + c] = (x[row(i) + c] - top[c]) * inverse[c];
  }
  use_one_thread_per_worker();
  power.exp_();
  std::vector<double> sum(width);
  for (std::int64_t i = 0; i < count; ++i) {
    const double times = groups.count[rows.source[begin + i]];
    for (std::int64_t c = 0; c < width; ++c) sum[c] += times * values[i * width + c];
  }
  for (std::int64_t c = 0; c < width; ++c) inverse[c] = static_cast<T>(1 / sum[c]);
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t c = 0; c < width; ++c) share[row(i) + c] = values[i * width + c] * inverse[c];
  }
}

// Writes d x of the group's rows; adds this group's part of d temperature into [M].
template <typename T>
void backward(const RowGroups& groups, std::int64_t group, const Shape& shape, const T* x,
              const T* share, const T* d_y, const T* temperature, T* d_x, double* d_temperature) {
  const Csr& rows = groups.rows;
  const std::int64_t width = shape.width();
  std::vector<double> sum(width), d_inverse(width);
  const auto for_each_row = [&](auto&& body) {
    for (std::int64_t e = rows.begin[group]; e < rows.begin[group + 1]; ++e)
      body(rows.source[e] * width, static_cast<T>(groups.count[rows.source[e]]));
  };
  for_each_row([&](std::int64_t at, T) {
    for (std::int64_t c = 0; c < width; ++c)
      sum[c] += static_cast<double>(share[at + c]) * d_y[at + c] * x[at + c];
  });
  std::vector<T> whole(sum.begin(), sum.end()), inverse(width);
  for (std::int64_t c = 0; c < width; ++c) inverse[c] = 1 / temperature[c / shape.channels];
  for_each_row([&](std::int64_t at, T count) {
    for (std::int64_t c = 0; c < width; ++c) {
      const T d_logit = share[at + c] * (d_y[at + c] * x[at + c] - count * whole[c]);
      d_x[at + c] = d_y[at + c] * share[at + c] + d_logit * inverse[c];
      d_inverse[c] += static_cast<double>(d_logit) * x[at + c];
    }
  });
  for (std::int64_t c = 0; c < width; ++c) {
    const double scale = inverse[c];
    d_temperature[c / shape.channels] -= d_inverse[c] * scale * scale;
  }
}

class SoftmaxGate : public torch::autograd::Function<SoftmaxGate> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& temperature, const RowGroups* groups,
                            const Backend& backend) {
    const auto [y, share] = backend.device ? backend.device->softmax_gate(*groups, x, temperature)
                                           : gated(*groups, x, temperature, backend.pool);
    context->save_for_backward({x, share, temperature});
    context->saved_data["groups"] = borrow(groups);
    keep_backend(context, backend);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& groups = borrowed<const RowGroups>(context->saved_data["groups"]);
    const Backend backend = kept_backend(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &share = saved[1], &temperature = saved[2];
    const at::Tensor d_y = gradients[0].contiguous();
    const auto [d_x, d_temperature] =
        backend.device ? backend.device->softmax_gate_gradient(groups, x, temperature, share, d_y)
                       : gradient(groups, x, temperature, share, d_y, backend.pool);
    return {d_x, d_temperature, {}, {}};
  }

 private:
  static DeviceOperators::Result gated(const RowGroups& groups, const at::Tensor& x,
                                       const at::Tensor& temperature, ThreadPool& pool) {
    const Shape shape(x);
    at::Tensor share = at::empty_like(x), y = at::empty_like(x);
    pool.parallel_for(groups.groups(), [&](std::int64_t g) {
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softmax_gate", [&] {
        const scalar_t* const in = x.const_data_ptr<scalar_t>();
        scalar_t* const part = share.mutable_data_ptr<scalar_t>();
        scalar_t* const out = y.mutable_data_ptr<scalar_t>();
        softmax(groups, g, shape, in, temperature.const_data_ptr<scalar_t>(), part);
        const Csr& rows = groups.rows;
        for (std::int64_t e = rows.begin[g]; e < rows.begin[g + 1]; ++e) {
          const std::int64_t at = rows.source[e] * shape.width();
          for (std::int64_t c = 0; c < shape.width(); ++c) out[at + c] = in[at + c] * part[at + c];
        }
      });
    });
    return {y, share};
  }

  static DeviceOperators::Gradients gradient(const RowGroups& groups, const at::Tensor& x,
                                             const at::Tensor& temperature, const at::Tensor& share,
                                             const at::Tensor& d_y, ThreadPool& pool) {
    const Shape shape(x);
    at::Tensor d_x = at::empty_like(x),
               parts = at::zeros({groups.groups(), shape.members}, at::kDouble);
    pool.parallel_for(groups.groups(), [&](std::int64_t g) {
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softmax_gate", [&] {
        tpudist::backward(groups, g, shape, x.const_data_ptr<scalar_t>(),
                          share.const_data_ptr<scalar_t>(), d_y.const_data_ptr<scalar_t>(),
                          temperature.const_data_ptr<scalar_t>(), d_x.mutable_data_ptr<scalar_t>(),
                          parts.mutable_data_ptr<double>() + g * shape.members);
      });
    });
    at::Tensor d_temperature = at::zeros({shape.members}, at::kDouble);
    for (std::int64_t g = 0; g < groups.groups(); ++g) d_temperature.add_(parts[g]);
    return {d_x, d_temperature.to(x.scalar_type())};
  }
};

}  // namespace

at::Tensor softmax_gate(const at::Tensor& x, const at::Tensor& temperature, const RowGroups& groups,
                        const Backend& backend) {
  return SoftmaxGate::apply(x.contiguous(), temperature.contiguous(), &groups, backend);
}

}  // namespace tpudist
