#include <ATen/ATen.h>

#include <vector>

#include "models/kernels/threads.hpp"
#include "models/operators/cpu_backend.hpp"
#include "models/operators/gate_rows.hpp"

namespace tpudist {
namespace {

struct Shape {
  explicit Shape(const at::Tensor& x) : members(x.size(1)), channels(x.size(2)) {}
  std::int64_t members, channels;
  std::int64_t width() const { return members * channels; }
};

template <typename T>
std::vector<T> inverse_temperatures(const Shape& shape, const T* temperature) {
  std::vector<T> inverse(static_cast<std::size_t>(shape.width()));
  for (std::int64_t c = 0; c < shape.width(); ++c) inverse[c] = 1 / temperature[c / shape.channels];
  return inverse;
}

// Writes the softmax of the group's rows into `share`, and the gated rows into y.
template <typename T>
void gate(const RowGroups& groups, std::int64_t group, const Shape& shape, const T* x,
          const T* temperature, T* share, T* y) {
  using Rows = GateRows<T>;
  const Csr& rows = groups.rows;
  const std::int64_t begin = rows.begin[group], count = rows.begin[group + 1] - begin,
                     width = shape.width();
  if (count == 0) return;
  const auto row = [&](std::int64_t i) { return rows.source[begin + i] * width; };
  std::vector<T> top(x + row(0), x + row(0) + width),
      inverse = inverse_temperatures(shape, temperature);
  // The x of the largest logit, not the largest x: training may make a temperature negative.
  for (std::int64_t i = 1; i < count; ++i)
    Rows::raise(x + row(i), inverse.data(), width, top.data());
  // The exponentials of the whole group at once: one call of ATen's vectorised function.
  at::Tensor power = at::empty({count * width}, c10::CppTypeToScalarType<T>::value);
  T* const values = power.mutable_data_ptr<T>();
  for (std::int64_t i = 0; i < count; ++i)
    Rows::logits(x + row(i), top.data(), inverse.data(), width, values + i * width);
  use_one_thread_per_worker();
  power.exp_();
  std::vector<double> sum(static_cast<std::size_t>(width));
  for (std::int64_t i = 0; i < count; ++i)
    Rows::add(values + i * width, groups.count[rows.source[begin + i]], width, sum.data());
  for (std::int64_t c = 0; c < width; ++c) inverse[c] = static_cast<T>(1 / sum[c]);
  for (std::int64_t i = 0; i < count; ++i) {
    Rows::apply(x + row(i), values + i * width, inverse.data(), width, share + row(i), y + row(i));
  }
}

// Writes d x of the group's rows; adds this group's part of d temperature into [M].
template <typename T>
void gate_gradient(const RowGroups& groups, std::int64_t group, const Shape& shape, const T* x,
                   const T* share, const T* d_y, const T* temperature, T* d_x,
                   double* d_temperature) {
  using Rows = GateRows<T>;
  const Csr& rows = groups.rows;
  const std::int64_t width = shape.width();
  std::vector<double> sum(static_cast<std::size_t>(width)), d_inverse(sum);
  const auto for_each_row = [&](auto&& body) {
    for (std::int64_t e = rows.begin[group]; e < rows.begin[group + 1]; ++e)
      body(rows.source[e] * width, static_cast<T>(groups.count[rows.source[e]]));
  };
  for_each_row([&](std::int64_t at, T) {
    Rows::add_gradient(x + at, share + at, d_y + at, width, sum.data());
  });
  const std::vector<T> whole(sum.begin(), sum.end()),
      inverse = inverse_temperatures(shape, temperature);
  for_each_row([&](std::int64_t at, T count) {
    Rows::spread(x + at, share + at, d_y + at, whole.data(), inverse.data(), count, width, d_x + at,
                 d_inverse.data());
  });
  for (std::int64_t c = 0; c < width; ++c) {
    const double scale = inverse[c];
    d_temperature[c / shape.channels] -= d_inverse[c] * scale * scale;
  }
}

}  // namespace

Backend::Result CpuBackend::softmax_gate(const RowGroups& groups, const at::Tensor& x,
                                         const at::Tensor& temperature) const {
  const Shape shape(x);
  at::Tensor share = at::empty_like(x), y = at::empty_like(x);
  pool_.parallel_for(groups.groups(), [&](std::int64_t g) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softmax_gate", [&] {
      gate(groups, g, shape, x.const_data_ptr<scalar_t>(), temperature.const_data_ptr<scalar_t>(),
           share.mutable_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>());
    });
  });
  return {y, share};
}

Backend::Gradients CpuBackend::softmax_gate_gradient(const RowGroups& groups, const at::Tensor& x,
                                                     const at::Tensor& temperature,
                                                     const at::Tensor& share,
                                                     const at::Tensor& d_y) const {
  const Shape shape(x);
  at::Tensor d_x = at::empty_like(x),
             parts = at::zeros({groups.groups(), shape.members}, at::kDouble);
  pool_.parallel_for(groups.groups(), [&](std::int64_t g) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softmax_gate", [&] {
      gate_gradient(groups, g, shape, x.const_data_ptr<scalar_t>(),
                    share.const_data_ptr<scalar_t>(), d_y.const_data_ptr<scalar_t>(),
                    temperature.const_data_ptr<scalar_t>(), d_x.mutable_data_ptr<scalar_t>(),
                    parts.mutable_data_ptr<double>() + g * shape.members);
    });
  });
  at::Tensor d_temperature = at::zeros({shape.members}, at::kDouble);
  double* const total = d_temperature.mutable_data_ptr<double>();
  const double* const part = parts.const_data_ptr<double>();
  for (std::int64_t i = 0; i < parts.numel(); ++i) total[i % shape.members] += part[i];
  return {d_x, d_temperature.to(x.scalar_type())};
}

}  // namespace tpudist
