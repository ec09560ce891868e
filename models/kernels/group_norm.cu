#include <cmath>

#include "models/kernels/cuda_rows.hpp"
#include "models/kernels/row_launches.hpp"

namespace tpudist {
namespace {

using cuda_rows::AddedUp;
using cuda_rows::Sums;

// The shift of a group's column.
template <typename T>
__device__ double shift_of(const T* shift, const GroupPointers& groups, std::int64_t group,
                           std::int64_t width, std::int64_t column) {
  return shift ? static_cast<double>(shift[groups.run_of(group) * width + column]) : 1.0;
}

// The steps and functors below are run for one column of one group, or of one row.
template <typename T>
struct Mean : AddedUp<double, 1> {
  GroupPointers groups;
  std::int64_t width;
  Planes<const T> x;
  Planes<double> mean;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, mean); }
  template <int N>
  __device__ Sums<double, 1, N> start(std::int64_t, std::int64_t) const {
    return {};
  }
  template <typename State>
  __device__ void add(State& sum, float, std::int64_t row, std::int64_t column) const {
    sum.of[0].at[0] +=
        static_cast<double>(__ldg(groups.count + row)) * __ldg(x + row * width + column);
  }
  template <typename State>
  __device__ void finish(const State& sum, std::int64_t group, std::int64_t column) const {
    mean[group * width + column] = sum.of[0].at[0] / groups.size[group];
  }
};

// Sums, and the value that is subtracted from every row of the group.
template <typename Centre, int kNumbers>
struct Centred : Sums<double, kNumbers, 1> {
  Centre centre;
};

template <typename T>
struct Scale : AddedUp<double, 1> {
  GroupPointers groups;
  std::int64_t width;
  Planes<const T> x, shift;
  double eps;
  Planes<double> mean, scale;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, shift, mean, scale); }
  template <int N>
  __device__ Centred<double, 1> start(std::int64_t group, std::int64_t column) const {
    return {{}, shift_of(shift.data, groups, group, width, column) * mean[group * width + column]};
  }
  template <typename State>
  __device__ void add(State& squares, float, std::int64_t row, std::int64_t column) const {
    const double o = __ldg(x + row * width + column) - squares.centre;
    squares.of[0].at[0] += static_cast<double>(__ldg(groups.count + row)) * o * o;
  }
  template <typename State>
  __device__ void finish(const State& squares, std::int64_t group, std::int64_t column) const {
    scale[group * width + column] = 1 / sqrt(squares.of[0].at[0] / groups.size[group] + eps);
  }
};

template <typename T>
struct Normalise {
  GroupPointers groups;
  std::int64_t width;
  Planes<const T> x, shift;
  Planes<const double> mean, scale;
  Planes<T> y;

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, x, shift, mean, scale, y);
  }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * width + column, group = groups.of_row[row],
                       of = group * width + column;
    const auto centre =
        static_cast<T>(shift_of(shift.data, groups, group, width, column) * mean[of]);
    y[at] = (x[at] - centre) * static_cast<T>(scale[of]);
  }
};

template <typename T>
struct NormSums : AddedUp<double, 2> {  // of d, and of d o
  GroupPointers groups;
  std::int64_t width;
  Planes<const T> x, d_y, shift;
  Planes<const double> mean, scale;
  NormGradient gradient;

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, x, d_y, shift, mean, scale, gradient.along, gradient.constant,
                       gradient.shift);
  }
  template <int N>
  __device__ Centred<T, 2> start(std::int64_t group, std::int64_t column) const {
    return {{},
            static_cast<T>(shift_of(shift.data, groups, group, width, column) *
                           mean[group * width + column])};
  }
  template <typename State>
  __device__ void add(State& sums, float, std::int64_t row, std::int64_t column) const {
    const T d = __ldg(d_y + row * width + column);
    sums.of[0].at[0] += d;
    sums.of[1].at[0] += static_cast<double>(d) * (__ldg(x + row * width + column) - sums.centre);
  }
  template <typename State>
  __device__ void finish(const State& sums, std::int64_t group, std::int64_t column) const {
    const std::int64_t of = group * width + column;
    const double sum = sums.of[0].at[0], with_o = sums.of[1].at[0];
    const double a = shift_of(shift.data, groups, group, width, column);
    const double cube = scale[of] * scale[of] * scale[of];
    // The sum of d o over the rows; the mean of o itself is (1 - a) * mean.
    const double d_o = scale[of] * sum - cube * with_o * mean[of] * (1 - a);
    gradient.along[of] = cube * with_o / groups.size[group];
    gradient.constant[of] = a * d_o / groups.size[group];
    if (gradient.shift) gradient.shift[of] = -mean[of] * d_o;
  }
};

template <typename T>
struct NormBackward {
  GroupPointers groups;
  std::int64_t width;
  Planes<const T> x, d_y, shift;
  Planes<const double> mean, scale;
  NormGradient gradient;
  Planes<T> d_x;

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, x, d_y, shift, mean, scale, gradient.along, gradient.constant,
                       gradient.shift, d_x);
  }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * width + column, group = groups.of_row[row],
                       of = group * width + column;
    const auto centre =
        static_cast<T>(shift_of(shift.data, groups, group, width, column) * mean[of]);
    const auto along = static_cast<T>(gradient.along[of]),
               constant = static_cast<T>(gradient.constant[of]);
    d_x[at] = static_cast<T>(scale[of]) * d_y[at] -
              static_cast<T>(groups.count[row]) * (along * (x[at] - centre) + constant);
  }
};

}  // namespace

template <typename T>
void launch_group_statistics(const GroupPointers& groups, Columns columns, Planes<const T> x,
                             Planes<const T> shift, double eps, Planes<double> mean,
                             Planes<double> scale, Planes<double> parts, CUstream_st* stream) {
  cuda_rows::launch_walk_twice(groups.rows, columns, Mean<T>{{}, groups, columns.width, x, mean},
                               Scale<T>{{}, groups, columns.width, x, shift, eps, mean, scale},
                               parts, stream);
}

template <typename T>
void launch_normalise(const GroupPointers& groups, Columns columns, Planes<const T> x,
                      Planes<const T> shift, Planes<const double> mean, Planes<const double> scale,
                      Planes<T> y, CUstream_st* stream) {
  cuda_rows::launch<1>(groups.row_count, columns,
                       Normalise<T>{groups, columns.width, x, shift, mean, scale, y}, stream);
}

template <typename T>
void launch_norm_sums(const GroupPointers& groups, Columns columns, Planes<const T> x,
                      Planes<const T> d_y, Planes<const T> shift, Planes<const double> mean,
                      Planes<const double> scale, const NormGradient& gradient,
                      Planes<double> parts, CUstream_st* stream) {
  cuda_rows::launch_walk(
      groups.rows, columns, false,
      NormSums<T>{{}, groups, columns.width, x, d_y, shift, mean, scale, gradient}, parts, stream);
}

template <typename T>
void launch_norm_gradient(const GroupPointers& groups, Columns columns, Planes<const T> x,
                          Planes<const T> d_y, Planes<const T> shift, Planes<const double> mean,
                          Planes<const double> scale, const NormGradient& gradient, Planes<T> d_x,
                          CUstream_st* stream) {
  cuda_rows::launch<1>(
      groups.row_count, columns,
      NormBackward<T>{groups, columns.width, x, d_y, shift, mean, scale, gradient, d_x}, stream);
}

#define TPUDIST_FOR(T)                                                                            \
  template void launch_group_statistics(const GroupPointers&, Columns, Planes<const T>,           \
                                        Planes<const T>, double, Planes<double>, Planes<double>,  \
                                        Planes<double>, CUstream_st*);                            \
  template void launch_normalise(const GroupPointers&, Columns, Planes<const T>, Planes<const T>, \
                                 Planes<const double>, Planes<const double>, Planes<T>,           \
                                 CUstream_st*);                                                   \
  template void launch_norm_sums(const GroupPointers&, Columns, Planes<const T>, Planes<const T>, \
                                 Planes<const T>, Planes<const double>, Planes<const double>,     \
                                 const NormGradient&, Planes<double>, CUstream_st*);              \
  template void launch_norm_gradient(                                                             \
      const GroupPointers&, Columns, Planes<const T>, Planes<const T>, Planes<const T>,           \
      Planes<const double>, Planes<const double>, const NormGradient&, Planes<T>, CUstream_st*)
TPUDIST_FOR(float);
TPUDIST_FOR(double);
#undef TPUDIST_FOR

}  // namespace tpudist
