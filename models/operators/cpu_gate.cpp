#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "models/kernels/row_functions.hpp"
#include "models/operators/cpu_backend.hpp"
#include "models/operators/vector_loops.hpp"

namespace tpudist {
namespace {

void exponentials(float* x, std::int64_t n) {
  exp_values(x, n, x);
}
void exponentials(double* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = std::exp(x[i]);
}

// Writes the softmax of the group's rows of one member into `share`, and x beside the gated rows
// into y.
template <typename T>
void gate(const RowGroups& groups, std::int64_t group, std::int64_t width, const T* x,
          T temperature, T* share, T* y) {
  using Rows = GateRows<T>;
  const Csr& rows = groups.rows;
  const std::int64_t begin = rows.begin[group], count = rows.begin[group + 1] - begin;
  if (count == 0) return;
  const auto row = [&](std::int64_t i) { return rows.source[begin + i] * width; };
  std::vector<T> top(x + row(0), x + row(0) + width), inverse(width, 1 / temperature);
  // The x of the largest logit, not the largest x: training may make a temperature negative.
  for (std::int64_t i = 1; i < count; ++i)
    Rows::raise(x + row(i), inverse.data(), width, top.data());
  std::vector<T> powers(static_cast<std::size_t>(count * width));
  T* const values = powers.data();
  for (std::int64_t i = 0; i < count; ++i)
    Rows::logits(x + row(i), top.data(), inverse.data(), width, values + i * width);
  exponentials(values, count * width);
  std::vector<double> sum(static_cast<std::size_t>(width));
  for (std::int64_t i = 0; i < count; ++i)
    Rows::add(values + i * width, groups.count[rows.source[begin + i]], width, sum.data());
  for (std::int64_t c = 0; c < width; ++c) inverse[c] = static_cast<T>(1 / sum[c]);
  for (std::int64_t i = 0; i < count; ++i) {
    Rows::apply(x + row(i), values + i * width, inverse.data(), width, share + row(i),
                y + 2 * row(i));
  }
}

// Writes d x of the group's rows of one member. Returns this group's part of d temperature.
template <typename T>
double gate_gradient(const RowGroups& groups, std::int64_t group, std::int64_t width, const T* x,
                     const T* share, const T* d_y, T temperature, T* d_x) {
  using Rows = GateRows<T>;
  const Csr& rows = groups.rows;
  std::vector<double> sum(static_cast<std::size_t>(width)), d_inverse(sum);
  const auto for_each_row = [&](auto&& body) {
    for (std::int64_t e = rows.begin[group]; e < rows.begin[group + 1]; ++e)
      body(rows.source[e] * width, static_cast<T>(groups.count[rows.source[e]]));
  };
  for_each_row([&](std::int64_t at, T) {
    Rows::add_gradient(x + at, share + at, d_y + 2 * at, width, sum.data());
  });
  const std::vector<T> whole(sum.begin(), sum.end()), inverse(width, 1 / temperature);
  for_each_row([&](std::int64_t at, T count) {
    Rows::spread(x + at, share + at, d_y + 2 * at, whole.data(), inverse.data(), count, width,
                 d_x + at, d_inverse.data());
  });
  const double scale = 1 / temperature;
  double d_temperature = 0;
  for (const double part : d_inverse) d_temperature -= part * scale * scale;
  return d_temperature;
}

}  // namespace

Backend::Result CpuBackend::softmax_gate(const RowGroups& groups, const at::Tensor& x,
                                         const at::Tensor& temperature) const {
  at::Tensor share = rows_like(x), y = make_rows(x.size(0), x.size(1), 2 * x.size(2), x.options());
  pool_.parallel_for(x.size(0) * groups.groups(), [&](std::int64_t task) {
    const std::int64_t m = task / groups.groups();
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softmax_gate", [&] {
      gate(groups, task % groups.groups(), x.size(2), plane<scalar_t>(x, m),
           temperature.const_data_ptr<scalar_t>()[m], mutable_plane<scalar_t>(share, m),
           mutable_plane<scalar_t>(y, m));
    });
  });
  return {y, share};
}

Backend::Gradients CpuBackend::softmax_gate_gradient(const RowGroups& groups, const at::Tensor& x,
                                                     const at::Tensor& temperature,
                                                     const at::Tensor& share,
                                                     const at::Tensor& d_y) const {
  const std::int64_t count = groups.groups();
  at::Tensor d_x = rows_like(x), d_temperature = at::zeros({x.size(0)}, at::kDouble);
  std::vector<double> parts(static_cast<std::size_t>(x.size(0) * count));
  pool_.parallel_for(x.size(0) * count, [&](std::int64_t task) {
    const std::int64_t m = task / count;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softmax_gate", [&] {
      parts[task] =
          gate_gradient(groups, task % count, x.size(2), plane<scalar_t>(x, m),
                        plane<scalar_t>(share, m), plane<scalar_t>(d_y, m),
                        temperature.const_data_ptr<scalar_t>()[m], mutable_plane<scalar_t>(d_x, m));
    });
  });
  double* const total = d_temperature.mutable_data_ptr<double>();
  for (std::size_t i = 0; i < parts.size(); ++i)
    total[static_cast<std::int64_t>(i) / count] += parts[i];
  return {d_x, d_temperature.to(x.scalar_type())};
}

}  // namespace tpudist
