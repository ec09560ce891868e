#include "models/device/device_kernels.hpp"

#include <ATen/Dispatch.h>

#include "models/operators/backend.hpp"

namespace tpudist {
namespace {

// `count` numbers of each group, [M, count * groups, C].
at::Tensor of_groups(const GroupPointers& groups, const at::Tensor& x, at::ScalarType type,
                     std::int64_t count = 1) {
  return make_rows(x.size(0), count * groups.rows.rows, x.size(2), x.options().dtype(type));
}

// The i-th of these numbers.
template <typename T>
Planes<T> part(const GroupPointers& groups, const Columns& columns, Planes<T> all, std::int64_t i) {
  return {all.data + i * groups.rows.rows * columns.width, all.distance};
}

}  // namespace

Backend::Result normalise_by_kernels(const GroupPointers& groups, const at::Tensor& x,
                                     const at::Tensor& shift, double eps) {
  const Columns columns = columns_of(x);
  const at::Tensor y = rows_like(x), measured = of_groups(groups, x, at::kDouble, 2),
                   parts = parts_of(groups.rows, x, at::kDouble);
  const auto mean = mutable_planes_of<double>(measured), scale = part(groups, columns, mean, 1);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "normalise", [&] {
    const auto in = planes_of<scalar_t>(x), shifts = planes_of<scalar_t>(shift);
    launch_group_statistics(groups, columns, in, shifts, eps, mean, scale,
                            mutable_planes_of<double>(parts), stream_of(x));
    launch_normalise(groups, columns, in, shifts, planes_of<double>(measured),
                     part(groups, columns, planes_of<double>(measured), 1),
                     mutable_planes_of<scalar_t>(y), stream_of(x));
  });
  return {y, measured};
}

Backend::Gradients normalise_gradient_by_kernels(const GroupPointers& groups, const at::Tensor& x,
                                                 const at::Tensor& shift, const at::Tensor& kept,
                                                 const at::Tensor& d_y) {
  const Columns columns = columns_of(x);
  const at::Tensor d_x = rows_like(x),
                   sums = of_groups(groups, x, at::kDouble, shift.defined() ? 3 : 2),
                   parts = parts_of(groups.rows, x, at::kDouble);
  const auto mean = planes_of<double>(kept), scale = part(groups, columns, mean, 1);
  NormGradient gradient;
  gradient.along = mutable_planes_of<double>(sums);
  gradient.constant = part(groups, columns, gradient.along, 1);
  if (shift.defined()) gradient.shift = part(groups, columns, gradient.along, 2);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "normalise_gradient", [&] {
    const auto in = planes_of<scalar_t>(x), d = planes_of<scalar_t>(d_y),
               shifts = planes_of<scalar_t>(shift);
    launch_norm_sums(groups, columns, in, d, shifts, mean, scale, gradient,
                     mutable_planes_of<double>(parts), stream_of(x));
    launch_norm_gradient(groups, columns, in, d, shifts, mean, scale, gradient,
                         mutable_planes_of<scalar_t>(d_x), stream_of(x));
  });
  if (!shift.defined()) return {d_x, {}};
  const std::int64_t count = groups.rows.rows;
  return {d_x, sums.narrow(1, 2 * count, count)};
}

Backend::Result softmax_gate_by_kernels(const GroupPointers& groups, const at::Tensor& x,
                                        const at::Tensor& temperature) {
  const Columns columns = columns_of(x);
  const at::Tensor y = rows_like(x), share = rows_like(x),
                   top = of_groups(groups, x, x.scalar_type()),
                   sum = of_groups(groups, x, at::kDouble),
                   parts = parts_of(groups.rows, x, at::kDouble);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softmax_gate", [&] {
    const auto in = planes_of<scalar_t>(x), divisor = planes_of<scalar_t>(temperature);
    launch_softmax_sums(groups, columns, in, divisor, mutable_planes_of<scalar_t>(top),
                        mutable_planes_of<double>(sum), mutable_planes_of<double>(parts),
                        stream_of(x));
    launch_softmax_gate(groups, columns, in, divisor, planes_of<scalar_t>(top),
                        planes_of<double>(sum), mutable_planes_of<scalar_t>(share),
                        mutable_planes_of<scalar_t>(y), stream_of(x));
  });
  const at::Tensor joined = make_rows(x.size(0), x.size(1), 2 * x.size(2), x.options());
  joined.narrow(2, 0, x.size(2)).copy_(x);
  joined.narrow(2, x.size(2), x.size(2)).copy_(y);
  return {joined, share};
}

Backend::Gradients softmax_gate_gradient_by_kernels(const GroupPointers& groups,
                                                    const at::Tensor& x,
                                                    const at::Tensor& temperature,
                                                    const at::Tensor& kept, const at::Tensor& d_y) {
  const Columns columns = columns_of(x);
  const at::Tensor d_gated = as_planes(d_y.narrow(2, x.size(2), x.size(2)));
  at::Tensor d_x = rows_like(x);
  const at::Tensor whole = of_groups(groups, x, at::kDouble), of_temperature = rows_like(whole),
                   parts = parts_of(groups.rows, x, at::kDouble);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softmax_gate_gradient", [&] {
    const auto in = planes_of<scalar_t>(x), share = planes_of<scalar_t>(kept),
               d = planes_of<scalar_t>(d_gated), divisor = planes_of<scalar_t>(temperature);
    launch_softmax_gradient_sums(
        groups, columns, in, share, d, divisor, mutable_planes_of<double>(whole),
        mutable_planes_of<double>(of_temperature), mutable_planes_of<double>(parts), stream_of(x));
    launch_softmax_gradient(groups, columns, in, share, d, divisor, planes_of<double>(whole),
                            mutable_planes_of<scalar_t>(d_x), stream_of(x));
  });
  d_x.add_(d_y.narrow(2, 0, x.size(2)));
  return {d_x, of_temperature};
}

}  // namespace tpudist
