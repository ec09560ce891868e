#include <cmath>

#include "models/kernels/cuda_rows.hpp"
#include "models/kernels/group_rows.hpp"

namespace tpudist {
namespace {

// Each functor below is run for one column of one group, or of one row.
template <typename T>
struct SoftmaxSums {
  GroupPointers groups;
  std::int64_t width;
  Planes<const T> x, temperature;
  Planes<T> top;
  Planes<double> sum;

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, x, temperature, top, sum);
  }
  template <int N>
  __device__ void run(std::int64_t group, std::int64_t column) const {
    const T inverse = 1 / temperature[0];
    // The x of the largest logit: training may turn a temperature negative.
    bool first = true;
    T best = 0;
    cuda_rows::for_entries(groups.rows, group, [&](float, std::int64_t row) {
      const T value = __ldg(x + row * width + column);
      if (first || (inverse < 0 ? value < best : best < value)) best = value;
      first = false;
    });
    double total = 0;
    cuda_rows::for_entries(groups.rows, group, [&](float, std::int64_t row) {
      const T power = exp((__ldg(x + row * width + column) - best) * inverse);
      total += static_cast<double>(__ldg(groups.count + row)) * power;
    });
    top[group * width + column] = best;
    sum[group * width + column] = total;
  }
};

template <typename T>
struct SoftmaxGate {
  GroupPointers groups;
  std::int64_t width;
  Planes<const T> x, temperature, top;
  Planes<const double> sum;
  Planes<T> share, y;

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, x, temperature, top, sum, share, y);
  }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * width + column, of = groups.of_row[row] * width + column;
    const T inverse = 1 / temperature[0];
    const T part = exp((x[at] - top[of]) * inverse) * static_cast<T>(1 / sum[of]);
    share[at] = part;
    y[at] = x[at] * part;
  }
};

// d loss / d logit of a row.
template <typename T>
__device__ T logit_gradient(T x, T share, T d_y, float count, double whole) {
  return share * (d_y * x - static_cast<T>(count) * static_cast<T>(whole));
}

template <typename T>
struct SoftmaxGradientSums {
  GroupPointers groups;
  std::int64_t width;
  Planes<const T> x, share, d_y, temperature;
  Planes<double> whole, d_temperature;

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, x, share, d_y, temperature, whole, d_temperature);
  }
  template <int N>
  __device__ void run(std::int64_t group, std::int64_t column) const {
    double sum = 0, d_inverse = 0;
    cuda_rows::for_entries(groups.rows, group, [&](float, std::int64_t row) {
      const std::int64_t at = row * width + column;
      sum += static_cast<double>(__ldg(share + at)) * __ldg(d_y + at) * __ldg(x + at);
    });
    cuda_rows::for_entries(groups.rows, group, [&](float, std::int64_t row) {
      const std::int64_t at = row * width + column;
      const T own = __ldg(x + at), d = logit_gradient(own, __ldg(share + at), __ldg(d_y + at),
                                                      __ldg(groups.count + row), sum);
      d_inverse += static_cast<double>(d) * own;
    });
    const double scale = static_cast<T>(1) / temperature[0];
    whole[group * width + column] = sum;
    d_temperature[group * width + column] = -(d_inverse * scale * scale);
  }
};

template <typename T>
struct SoftmaxBackward {
  GroupPointers groups;
  std::int64_t width;
  Planes<const T> x, share, d_y, temperature;
  Planes<const double> whole;
  Planes<T> d_x;

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, x, share, d_y, temperature, whole, d_x);
  }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * width + column, of = groups.of_row[row] * width + column;
    const T inverse = 1 / temperature[0];
    d_x[at] = d_y[at] * share[at] +
              logit_gradient(x[at], share[at], d_y[at], groups.count[row], whole[of]) * inverse;
  }
};

}  // namespace

template <typename T>
void launch_softmax_sums(const GroupPointers& groups, Columns columns, Planes<const T> x,
                         Planes<const T> temperature, Planes<T> top, Planes<double> sum,
                         CUstream_st* stream) {
  cuda_rows::launch<1>(groups.rows.rows, columns,
                       SoftmaxSums<T>{groups, columns.width, x, temperature, top, sum}, stream);
}

template <typename T>
void launch_softmax_gate(const GroupPointers& groups, Columns columns, Planes<const T> x,
                         Planes<const T> temperature, Planes<const T> top, Planes<const double> sum,
                         Planes<T> share, Planes<T> y, CUstream_st* stream) {
  cuda_rows::launch<1>(groups.row_count, columns,
                       SoftmaxGate<T>{groups, columns.width, x, temperature, top, sum, share, y},
                       stream);
}

template <typename T>
void launch_softmax_gradient_sums(const GroupPointers& groups, Columns columns, Planes<const T> x,
                                  Planes<const T> share, Planes<const T> d_y,
                                  Planes<const T> temperature, Planes<double> whole,
                                  Planes<double> d_temperature, CUstream_st* stream) {
  cuda_rows::launch<1>(groups.rows.rows, columns,
                       SoftmaxGradientSums<T>{groups, columns.width, x, share, d_y, temperature,
                                              whole, d_temperature},
                       stream);
}

template <typename T>
void launch_softmax_gradient(const GroupPointers& groups, Columns columns, Planes<const T> x,
                             Planes<const T> share, Planes<const T> d_y,
                             Planes<const T> temperature, Planes<const double> whole, Planes<T> d_x,
                             CUstream_st* stream) {
  cuda_rows::launch<1>(
      groups.row_count, columns,
      SoftmaxBackward<T>{groups, columns.width, x, share, d_y, temperature, whole, d_x}, stream);
}

#define TPUDIST_FOR(T)                                                                          \
  template void launch_softmax_sums(const GroupPointers&, Columns, Planes<const T>,             \
                                    Planes<const T>, Planes<T>, Planes<double>, CUstream_st*);  \
  template void launch_softmax_gate(const GroupPointers&, Columns, Planes<const T>,             \
                                    Planes<const T>, Planes<const T>, Planes<const double>,     \
                                    Planes<T>, Planes<T>, CUstream_st*);                        \
  template void launch_softmax_gradient_sums(const GroupPointers&, Columns, Planes<const T>,    \
                                             Planes<const T>, Planes<const T>, Planes<const T>, \
                                             Planes<double>, Planes<double>, CUstream_st*);     \
  template void launch_softmax_gradient(const GroupPointers&, Columns, Planes<const T>,         \
                                        Planes<const T>, Planes<const T>, Planes<const T>,      \
                                        Planes<const double>, Planes<T>, CUstream_st*)
TPUDIST_FOR(float);
TPUDIST_FOR(double);
#undef TPUDIST_FOR

}  // namespace tpudist
