#include <cmath>

#include "models/kernels/cuda_rows.hpp"
#include "models/kernels/group_rows.hpp"

namespace tpudist {
namespace {

// The value subtracted from every row of a group before scaling.
template <typename T>
__device__ double centre_of(const T* shift, std::int64_t column, double mean) {
  return (shift ? static_cast<double>(shift[column]) : 1.0) * mean;
}

// Each functor below is run for one column of one group, or of one row.
template <typename T>
struct Statistics {
  GroupPointers groups;
  std::int64_t width;
  Planes<const T> x, shift;
  double eps;
  Planes<double> mean, scale;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, shift, mean, scale); }
  template <int N>
  __device__ void run(std::int64_t group, std::int64_t column) const {
    double sum = 0, squares = 0;
    cuda_rows::for_entries(groups.rows, group, [&](float, std::int64_t row) {
      sum += static_cast<double>(__ldg(groups.count + row)) * __ldg(x + row * width + column);
    });
    sum /= groups.size[group];
    const double centre = centre_of(shift.data, column, sum);
    cuda_rows::for_entries(groups.rows, group, [&](float, std::int64_t row) {
      const double o = __ldg(x + row * width + column) - centre;
      squares += static_cast<double>(__ldg(groups.count + row)) * o * o;
    });
    mean[group * width + column] = sum;
    scale[group * width + column] = 1 / sqrt(squares / groups.size[group] + eps);
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
    const std::int64_t at = row * width + column, of = groups.of_row[row] * width + column;
    const auto centre = static_cast<T>(centre_of(shift.data, column, mean[of]));
    y[at] = (x[at] - centre) * static_cast<T>(scale[of]);
  }
};

template <typename T>
struct NormSums {
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
  __device__ void run(std::int64_t group, std::int64_t column) const {
    const std::int64_t of = group * width + column;
    const auto centre = static_cast<T>(centre_of(shift.data, column, mean[of]));
    double sum = 0, with_o = 0;
    cuda_rows::for_entries(groups.rows, group, [&](float, std::int64_t row) {
      const T d = __ldg(d_y + row * width + column);
      sum += d;
      with_o += static_cast<double>(d) * (__ldg(x + row * width + column) - centre);
    });
    const double a = shift ? static_cast<double>(shift[column]) : 1.0;
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
    const std::int64_t at = row * width + column, of = groups.of_row[row] * width + column;
    const auto centre = static_cast<T>(centre_of(shift.data, column, mean[of]));
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
                             Planes<double> scale, CUstream_st* stream) {
  cuda_rows::launch<1>(groups.rows.rows, columns,
                       Statistics<T>{groups, columns.width, x, shift, eps, mean, scale}, stream);
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
                      CUstream_st* stream) {
  cuda_rows::launch<1>(groups.rows.rows, columns,
                       NormSums<T>{groups, columns.width, x, d_y, shift, mean, scale, gradient},
                       stream);
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
                                        CUstream_st*);                                            \
  template void launch_normalise(const GroupPointers&, Columns, Planes<const T>, Planes<const T>, \
                                 Planes<const double>, Planes<const double>, Planes<T>,           \
                                 CUstream_st*);                                                   \
  template void launch_norm_sums(const GroupPointers&, Columns, Planes<const T>, Planes<const T>, \
                                 Planes<const T>, Planes<const double>, Planes<const double>,     \
                                 const NormGradient&, CUstream_st*);                              \
  template void launch_norm_gradient(                                                             \
      const GroupPointers&, Columns, Planes<const T>, Planes<const T>, Planes<const T>,           \
      Planes<const double>, Planes<const double>, const NormGradient&, Planes<T>, CUstream_st*)
TPUDIST_FOR(float);
TPUDIST_FOR(double);
#undef TPUDIST_FOR

}  // namespace tpudist
