#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "models/operators/cpu_backend.hpp"
#include "models/operators/vector_loops.hpp"

namespace tpudist {
namespace {

// The rows of one group inside tensors of `width` numbers a row.
struct Group {
  const RowGroups& groups;
  std::int64_t group, width;

  template <typename Body>
  void for_each_row(Body&& body) const {
    const Csr& rows = groups.rows;
    for (std::int64_t e = rows.begin[group]; e < rows.begin[group + 1]; ++e)
      body(rows.source[e] * width, groups.count[rows.source[e]]);
  }
  double size() const { return groups.size[group]; }
};

// mean[c] = the mean of x; scale[c] = 1 / sqrt(mean of o^2 + eps)
template <typename T>
void measure(const Group& group, const T* x, const T* shift, double eps, double* mean,
             double* scale) {
  const std::int64_t width = group.width;
  std::fill_n(mean, width, 0.0);
  std::fill_n(scale, width, 0.0);
  group.for_each_row(
      [&](std::int64_t at, double count) { NormRows<T>::add(x + at, count, width, mean); });
  for (std::int64_t c = 0; c < width; ++c) mean[c] /= group.size();
  std::vector<double> centre(width);
  for (std::int64_t c = 0; c < width; ++c) centre[c] = (shift ? shift[c] : 1.0) * mean[c];
  group.for_each_row([&](std::int64_t at, double count) {
    NormRows<T>::add_squares(x + at, centre.data(), count, width, scale);
  });
  for (std::int64_t c = 0; c < width; ++c) scale[c] = 1 / std::sqrt(scale[c] / group.size() + eps);
}

template <typename T>
void normalise_group(const Group& group, const T* x, const T* shift, const double* mean,
                     const double* scale, T* y) {
  const std::int64_t width = group.width;
  std::vector<T> centre(width), factor(scale, scale + width);
  for (std::int64_t c = 0; c < width; ++c)
    centre[c] = static_cast<T>((shift ? shift[c] : 1.0) * mean[c]);
  group.for_each_row([&](std::int64_t at, double) {
    NormRows<T>::apply(x + at, centre.data(), factor.data(), width, y + at);
  });
}

// Writes d x of the group's rows, and d shift [width] of this group.
template <typename T>
void group_gradient(const Group& group, const T* x, const T* d_y, const T* shift,
                    const double* mean, const double* scale, T* d_x, double* d_shift) {
  const std::int64_t width = group.width;
  std::vector<double> sum(width), sum_with_o(width);
  std::vector<T> centre(width), factor(scale, scale + width), along(width), constant(width);
  for (std::int64_t c = 0; c < width; ++c)
    centre[c] = static_cast<T>((shift ? shift[c] : 1.0) * mean[c]);
  group.for_each_row([&](std::int64_t at, double) {
    NormRows<T>::add_gradient(x + at, d_y + at, centre.data(), width, sum.data(),
                              sum_with_o.data());
  });
  for (std::int64_t c = 0; c < width; ++c) {
    const double a = shift ? shift[c] : 1.0, cube = scale[c] * scale[c] * scale[c];
    // The sum of d o over the rows; the mean of o itself is (1 - a) * mean.
    const double d_o = scale[c] * sum[c] - cube * sum_with_o[c] * mean[c] * (1 - a);
    along[c] = static_cast<T>(cube * sum_with_o[c] / group.size());
    constant[c] = static_cast<T>(a * d_o / group.size());
    if (d_shift) d_shift[c] = -mean[c] * d_o;
  }
  group.for_each_row([&](std::int64_t at, double count) {
    NormRows<T>::spread(x + at, d_y + at, centre.data(), factor.data(), along.data(),
                        constant.data(), static_cast<T>(count), width, d_x + at);
  });
}

// The shift of a member, or null.
template <typename T>
const T* shift_of(const at::Tensor& shift, std::int64_t member) {
  return shift.defined() ? plane<T>(shift, member) : nullptr;
}

}  // namespace

Backend::Result CpuBackend::normalise(const RowGroups& groups, const at::Tensor& x,
                                      const at::Tensor& shift, double eps) const {
  const std::int64_t width = x.size(2);
  at::Tensor y = rows_like(x);
  // [M, groups, 2, width] mean and scale
  at::Tensor measured = at::empty({x.size(0), groups.groups(), 2, width}, at::kDouble);
  pool_.parallel_for(x.size(0) * groups.groups(), [&](std::int64_t task) {
    const std::int64_t m = task / groups.groups();
    const Group group{groups, task % groups.groups(), width};
    double* const mean = measured.mutable_data_ptr<double>() + 2 * task * width;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "normalise_groups", [&] {
      const scalar_t* const data = plane<scalar_t>(x, m);
      const scalar_t* const shifts = shift_of<scalar_t>(shift, m);
      measure(group, data, shifts, eps, mean, mean + width);
      normalise_group(group, data, shifts, mean, mean + width, mutable_plane<scalar_t>(y, m));
    });
  });
  return {y, measured};
}

Backend::Gradients CpuBackend::normalise_gradient(const RowGroups& groups, const at::Tensor& x,
                                                  const at::Tensor& shift,
                                                  const at::Tensor& measured,
                                                  const at::Tensor& d_y) const {
  const std::int64_t width = x.size(2), count = groups.groups();
  at::Tensor d_x = rows_like(x), parts;
  if (shift.defined()) parts = at::empty({x.size(0), count, width}, at::kDouble);
  pool_.parallel_for(x.size(0) * count, [&](std::int64_t task) {
    const std::int64_t m = task / count;
    const double* const mean = measured.const_data_ptr<double>() + 2 * task * width;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "normalise_groups", [&] {
      group_gradient(Group{groups, task % count, width}, plane<scalar_t>(x, m),
                     plane<scalar_t>(d_y, m), shift_of<scalar_t>(shift, m), mean, mean + width,
                     mutable_plane<scalar_t>(d_x, m),
                     parts.defined() ? parts.mutable_data_ptr<double>() + task * width : nullptr);
    });
  });
  if (!parts.defined()) return {d_x, {}};
  at::Tensor d_shift = at::zeros({x.size(0), width}, at::kDouble);
  for (std::int64_t m = 0; m < x.size(0); ++m) {
    double* const sum = mutable_plane<double>(d_shift, m);
    const double* const part = plane<double>(parts, m);
    for (std::int64_t i = 0; i < count * width; ++i) sum[i % width] += part[i];
  }
  return {d_x, d_shift.to(x.scalar_type())};
}

}  // namespace tpudist
