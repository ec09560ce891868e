#include <cmath>

#include "models/kernels/cuda_rows.hpp"
#include "models/kernels/row_launches.hpp"

namespace tpudist {
namespace {

using cuda_rows::AddedUp;
using cuda_rows::Sums;

// The steps and functors below are run for one column of one group, or of one row.
template <typename T>
struct Top {
  using Number = double;
  static constexpr int kNumbers = 1;
  GroupPointers groups;
  std::int64_t width;
  Planes<const T> x, temperature;
  Planes<T> top;

  struct State : Sums<double, 1, 1> {
    bool smallest;  // training may turn a temperature negative
  };
  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, temperature, top); }
  template <int N>
  __device__ State start(std::int64_t group, std::int64_t) const {
    const bool smallest = temperature[groups.run_of(group)] < 0;
    State best{{}, smallest};
    best.of[0].at[0] = smallest ? INFINITY : -INFINITY;
    return best;
  }
  __device__ void take(State& best, double value) const {
    double& own = best.of[0].at[0];
    if (best.smallest ? value < own : own < value) own = value;
  }
  __device__ void add(State& best, float, std::int64_t row, std::int64_t column) const {
    take(best, __ldg(x + row * width + column));
  }
  __device__ void merge(State& best, const Sums<double, 1, 1>& part) const {
    take(best, part.of[0].at[0]);
  }
  __device__ void finish(const State& best, std::int64_t group, std::int64_t column) const {
    top[group * width + column] = static_cast<T>(best.of[0].at[0]);
  }
};

template <typename T>
struct SumOfPowers : AddedUp<double, 1> {
  GroupPointers groups;
  std::int64_t width;
  Planes<const T> x, temperature;
  Planes<T> top;
  Planes<double> sum;

  struct State : Sums<double, 1, 1> {
    T best, inverse;
  };
  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, x, temperature, top, sum);
  }
  template <int N>
  __device__ State start(std::int64_t group, std::int64_t column) const {
    return {{}, top[group * width + column], 1 / temperature[groups.run_of(group)]};
  }
  __device__ void add(State& total, float, std::int64_t row, std::int64_t column) const {
    const T power = exp((__ldg(x + row * width + column) - total.best) * total.inverse);
    total.of[0].at[0] += static_cast<double>(__ldg(groups.count + row)) * power;
  }
  __device__ void finish(const State& total, std::int64_t group, std::int64_t column) const {
    sum[group * width + column] = total.of[0].at[0];
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
    const std::int64_t at = row * width + column, group = groups.of_row[row],
                       of = group * width + column;
    const T inverse = 1 / temperature[groups.run_of(group)];
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

// The sum of share * d_y * x.
template <typename T>
struct SumOfGains : AddedUp<double, 1> {
  std::int64_t width;
  Planes<const T> x, share, d_y;
  Planes<double> whole;

  using State = Sums<double, 1, 1>;
  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, share, d_y, whole); }
  template <int N>
  __device__ State start(std::int64_t, std::int64_t) const {
    return {};
  }
  __device__ void add(State& sum, float, std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * width + column;
    sum.of[0].at[0] += static_cast<double>(__ldg(share + at)) * __ldg(d_y + at) * __ldg(x + at);
  }
  __device__ void finish(const State& sum, std::int64_t group, std::int64_t column) const {
    whole[group * width + column] = sum.of[0].at[0];
  }
};

template <typename T>
struct TemperatureGradient : AddedUp<double, 1> {
  GroupPointers groups;
  std::int64_t width;
  Planes<const T> x, share, d_y, temperature;
  Planes<double> whole, d_temperature;

  struct State : Sums<double, 1, 1> {
    double whole;
  };
  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, x, share, d_y, temperature, whole, d_temperature);
  }
  template <int N>
  __device__ State start(std::int64_t group, std::int64_t column) const {
    return {{}, whole[group * width + column]};
  }
  __device__ void add(State& sum, float, std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * width + column;
    const T own = __ldg(x + at), d = logit_gradient(own, __ldg(share + at), __ldg(d_y + at),
                                                    __ldg(groups.count + row), sum.whole);
    sum.of[0].at[0] += static_cast<double>(d) * own;
  }
  __device__ void finish(const State& sum, std::int64_t group, std::int64_t column) const {
    const double scale = static_cast<T>(1) / temperature[groups.run_of(group)];
    d_temperature[group * width + column] = -(sum.of[0].at[0] * scale * scale);
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
    const std::int64_t at = row * width + column, group = groups.of_row[row],
                       of = group * width + column;
    const T inverse = 1 / temperature[groups.run_of(group)];
    d_x[at] = d_y[at] * share[at] +
              logit_gradient(x[at], share[at], d_y[at], groups.count[row], whole[of]) * inverse;
  }
};

}  // namespace

template <typename T>
void launch_softmax_sums(const GroupPointers& groups, Columns columns, Planes<const T> x,
                         Planes<const T> temperature, Planes<T> top, Planes<double> sum,
                         Planes<double> parts, CUstream_st* stream) {
  cuda_rows::launch_walk_twice(
      groups.rows, columns, Top<T>{groups, columns.width, x, temperature, top},
      SumOfPowers<T>{{}, groups, columns.width, x, temperature, top, sum}, parts, stream);
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
                                  Planes<double> d_temperature, Planes<double> parts,
                                  CUstream_st* stream) {
  cuda_rows::launch_walk_twice(
      groups.rows, columns, SumOfGains<T>{{}, columns.width, x, share, d_y, whole},
      TemperatureGradient<T>{
          {}, groups, columns.width, x, share, d_y, temperature, whole, d_temperature},
      parts, stream);
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
                                    Planes<const T>, Planes<T>, Planes<double>, Planes<double>, \
                                    CUstream_st*);                                              \
  template void launch_softmax_gate(const GroupPointers&, Columns, Planes<const T>,             \
                                    Planes<const T>, Planes<const T>, Planes<const double>,     \
                                    Planes<T>, Planes<T>, CUstream_st*);                        \
  template void launch_softmax_gradient_sums(                                                   \
      const GroupPointers&, Columns, Planes<const T>, Planes<const T>, Planes<const T>,         \
      Planes<const T>, Planes<double>, Planes<double>, Planes<double>, CUstream_st*);           \
  template void launch_softmax_gradient(const GroupPointers&, Columns, Planes<const T>,         \
                                        Planes<const T>, Planes<const T>, Planes<const T>,      \
                                        Planes<const double>, Planes<T>, CUstream_st*)
TPUDIST_FOR(float);
TPUDIST_FOR(double);
#undef TPUDIST_FOR

}  // namespace tpudist
