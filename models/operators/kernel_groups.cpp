#include "models/operators/kernel_groups.hpp"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>

#include "models/operators/backend.hpp"
#include "models/operators/kernel_stream.hpp"

namespace tpudist {
namespace {

at::Tensor doubles(const at::Tensor& x, at::IntArrayRef sizes) {
  return at::empty(sizes, x.options().dtype(at::kDouble));
}

template <typename T>
const T* pointer_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<T>() : nullptr;
}

}  // namespace

Backend::Result normalise_by_kernels(const GroupPointers& groups, const at::Tensor& x,
                                     const at::Tensor& shift, double eps) {
  const std::int64_t width = columns(x), count = groups.rows.rows;
  const at::Tensor y = at::empty_like(x), measured = doubles(x, {2, count, width});
  double* const mean = measured.mutable_data_ptr<double>();
  double* const scale = mean + count * width;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "normalise", [&] {
    const scalar_t* const in = x.const_data_ptr<scalar_t>();
    const scalar_t* const shifts = pointer_or_null<scalar_t>(shift);
    launch_group_statistics(groups, width, in, shifts, eps, mean, scale, stream_of(x));
    launch_normalise(groups, width, in, shifts, mean, scale, y.mutable_data_ptr<scalar_t>(),
                     stream_of(x));
  });
  return {y, measured};
}

Backend::Gradients normalise_gradient_by_kernels(const GroupPointers& groups, const at::Tensor& x,
                                                 const at::Tensor& shift, const at::Tensor& kept,
                                                 const at::Tensor& d_y) {
  const std::int64_t width = columns(x), count = groups.rows.rows;
  const at::Tensor d_x = at::empty_like(x),
                   sums = doubles(x, {shift.defined() ? 3 : 2, count, width});
  const double* const mean = kept.const_data_ptr<double>();
  const double* const scale = mean + count * width;
  NormGradient gradient;
  gradient.along = sums.mutable_data_ptr<double>();
  gradient.constant = gradient.along + count * width;
  if (shift.defined()) gradient.shift = gradient.constant + count * width;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "normalise_gradient", [&] {
    const scalar_t* const in = x.const_data_ptr<scalar_t>();
    const scalar_t* const d = d_y.const_data_ptr<scalar_t>();
    const scalar_t* const shifts = pointer_or_null<scalar_t>(shift);
    launch_norm_sums(groups, width, in, d, shifts, mean, scale, gradient, stream_of(x));
    launch_norm_gradient(groups, width, in, d, shifts, mean, scale, gradient,
                         d_x.mutable_data_ptr<scalar_t>(), stream_of(x));
  });
  if (!shift.defined()) return {d_x, {}};
  return {d_x, sums.select(0, 2).sum(0).to(x.scalar_type()).view(shift.sizes())};
}

Backend::Result softmax_gate_by_kernels(const GroupPointers& groups, const at::Tensor& x,
                                        const at::Tensor& temperature) {
  const std::int64_t width = columns(x), channels = x.size(2), count = groups.rows.rows;
  const at::Tensor y = at::empty_like(x), share = at::empty_like(x),
                   top = at::empty({count, width}, x.options()), sum = doubles(x, {count, width});
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softmax_gate", [&] {
    const scalar_t* const in = x.const_data_ptr<scalar_t>();
    const scalar_t* const divisor = temperature.const_data_ptr<scalar_t>();
    launch_softmax_sums(groups, width, channels, in, divisor, top.mutable_data_ptr<scalar_t>(),
                        sum.mutable_data_ptr<double>(), stream_of(x));
    launch_softmax_gate(groups, width, channels, in, divisor, top.const_data_ptr<scalar_t>(),
                        sum.const_data_ptr<double>(), share.mutable_data_ptr<scalar_t>(),
                        y.mutable_data_ptr<scalar_t>(), stream_of(x));
  });
  return {y, share};
}

Backend::Gradients softmax_gate_gradient_by_kernels(const GroupPointers& groups,
                                                    const at::Tensor& x,
                                                    const at::Tensor& temperature,
                                                    const at::Tensor& kept, const at::Tensor& d_y) {
  const std::int64_t width = columns(x), channels = x.size(2), count = groups.rows.rows;
  const at::Tensor d_x = at::empty_like(x), whole = doubles(x, {count, width}),
                   parts = doubles(x, {count, x.size(1), channels});
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softmax_gate_gradient", [&] {
    const scalar_t* const in = x.const_data_ptr<scalar_t>();
    const scalar_t* const share = kept.const_data_ptr<scalar_t>();
    const scalar_t* const d = d_y.const_data_ptr<scalar_t>();
    const scalar_t* const divisor = temperature.const_data_ptr<scalar_t>();
    launch_softmax_gradient_sums(groups, width, channels, in, share, d, divisor,
                                 whole.mutable_data_ptr<double>(), parts.mutable_data_ptr<double>(),
                                 stream_of(x));
    launch_softmax_gradient(groups, width, channels, in, share, d, divisor,
                            whole.const_data_ptr<double>(), d_x.mutable_data_ptr<scalar_t>(),
                            stream_of(x));
  });
  return {d_x, parts.sum(at::IntArrayRef{0, 2}).to(x.scalar_type())};
}

}  // namespace tpudist
