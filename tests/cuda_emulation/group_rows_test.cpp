#include "models/kernels/row_launches.hpp"

#include <cmath>

#include "tests/cuda_emulation/kernel_case.hpp"

// The kernels of group_norm.cu and group_softmax.cu against their formulas, written plainly and in
// double. That they equal the operators of the CPU is seen in tests/models/operators.

namespace tpudist {
namespace {

// Rows in groups with counts, on the host and on the emulated device.
struct Groups {
  Groups(std::int64_t groups, std::int64_t rows, CounterRng& rng)
      : number(groups),
        of_row(assign(groups, rows, rng)),
        count(static_cast<std::size_t>(rows)),
        size(static_cast<std::size_t>(groups)),
        matrix(transpose_index(of_row, groups)) {
    for (std::size_t row = 0; row < count.size(); ++row) {
      count[row] = static_cast<float>(1 + rng.below(3));
      size[static_cast<std::size_t>(of_row[row])] += count[row];
    }
  }
  // Every group has a row.
  static std::vector<std::int32_t> assign(std::int64_t groups, std::int64_t rows, CounterRng& rng) {
    std::vector<std::int32_t> index;
    for (std::int64_t row = 0; row < rows; ++row)
      index.push_back(static_cast<std::int32_t>(
          row < groups ? row : rng.below(static_cast<std::uint64_t>(groups))));
    return index;
  }
  std::int64_t rows() const { return static_cast<std::int64_t>(of_row.size()); }

  std::int64_t number;
  std::vector<std::int32_t> of_row;
  std::vector<float> count;
  std::vector<double> size;
  Csr matrix;
};

// Groups of more than 8 rows are long.
struct DeviceGroups {
  explicit DeviceGroups(const Groups& groups)
      : matrix(groups.matrix, 8), of_row(groups.of_row), count(groups.count), size(groups.size) {}
  GroupPointers pointers() const {
    return {matrix.pointers(), of_row.data(), count.data(), size.data(),
            static_cast<std::int64_t>(of_row.size())};
  }
  test::DeviceMatrix matrix;
  test::GuardedArray<std::int32_t> of_row;
  test::GuardedArray<float> count;
  test::GuardedArray<double> size;
};

template <typename T>
std::vector<double> doubles(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

constexpr double kEps = 1e-3;

// A norm of one column of one group: its numbers x, and the gradients of y.
struct Column {
  std::vector<double> x, d_y, count;
  double shift = 1;
  double size() const {
    double sum = 0;
    for (const double c : count) sum += c;
    return sum;
  }
  double mean() const {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += count[i] * x[i];
    return sum / size();
  }
  double deviation() const {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += count[i] * std::pow(x[i] - shift * mean(), 2);
    return std::sqrt(sum / size() + kEps);
  }
  double loss() const {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      sum += d_y[i] * (x[i] - shift * mean()) / deviation();
    return sum;
  }
};

template <typename T>
class NormCase {
 public:
  NormCase(std::int64_t groups, std::int64_t rows, std::int64_t width, bool shifted)
      : rng_(21, static_cast<std::uint64_t>(rows * 100 + width)),
        host_(groups, rows, rng_),
        device_(host_),
        width_(width),
        shifted_(shifted),
        x_(test::random_rows<T>(rows * width, rng_)),
        d_y_(test::random_rows<T>(rows * width, rng_)),
        shift_(test::random_rows<T>(width, rng_)) {}

  void check() {
    const auto wide = static_cast<std::size_t>(host_.number * width_);
    const test::GuardedArray<T> x(x_), d_y(d_y_), shift(shift_);
    const T* const shifts = shifted_ ? shift.data() : nullptr;
    test::GuardedArray<double> mean(wide), scale(wide), along(wide), constant(wide), d_shift(wide),
        parts = device_.matrix.parts<double>(width_);
    test::run_both_ways(scale, [&](double* to) {
      launch_group_statistics<T>(device_.pointers(), width_, x.data(), shifts, kEps, mean.data(),
                                 to, parts.data(), nullptr);
    });
    test::GuardedArray<T> y(x_.size()), d_x(x_.size());
    test::run_both_ways(y, [&](T* to) {
      launch_normalise<T>(device_.pointers(), width_, x.data(), shifts, mean.data(), scale.data(),
                          to, nullptr);
    });
    const NormGradient gradient{along.data(), constant.data(), shifted_ ? d_shift.data() : nullptr};
    test::run_both_ways(constant, [&](double*) {
      launch_norm_sums<T>(device_.pointers(), width_, x.data(), d_y.data(), shifts, mean.data(),
                          scale.data(), gradient, parts.data(), nullptr);
    });
    test::run_both_ways(d_x, [&](T* to) {
      launch_norm_gradient<T>(device_.pointers(), width_, x.data(), d_y.data(), shifts, mean.data(),
                              scale.data(), gradient, to, nullptr);
    });
    expect(mean, y, d_x, d_shift);
  }

 private:
  Column column(std::int64_t group, std::int64_t c) const {
    Column column;
    if (shifted_) column.shift = shift_[static_cast<std::size_t>(c)];
    for (std::int64_t row = 0; row < host_.rows(); ++row) {
      if (host_.of_row[static_cast<std::size_t>(row)] != group) continue;
      column.x.push_back(x_[static_cast<std::size_t>(row * width_ + c)]);
      column.d_y.push_back(d_y_[static_cast<std::size_t>(row * width_ + c)]);
      column.count.push_back(host_.count[static_cast<std::size_t>(row)]);
    }
    return column;
  }

  void expect(const test::GuardedArray<double>& mean, const test::GuardedArray<T>& y,
              const test::GuardedArray<T>& d_x, const test::GuardedArray<double>& d_shift) const {
    for (std::int64_t group = 0; group < host_.number; ++group) {
      for (std::int64_t c = 0; c < width_; ++c) {
        Column column = this->column(group, c);
        const auto of = static_cast<std::size_t>(group * width_ + c);
        ASSERT_NEAR(mean[of], column.mean(), 1e-12);
        const double step = 1e-6;
        if (shifted_) {
          Column up = column, down = column;
          up.shift += step;
          down.shift -= step;
          ASSERT_NEAR(d_shift[of], (up.loss() - down.loss()) / (2 * step), 1e-3) << of;
        }
        std::size_t i = 0;
        for (std::int64_t row = 0; row < host_.rows(); ++row) {
          if (host_.of_row[static_cast<std::size_t>(row)] != group) continue;
          const auto at = static_cast<std::size_t>(row * width_ + c);
          const double expected = (column.x[i] - column.shift * column.mean()) / column.deviation();
          ASSERT_NEAR(y[at], expected, sizeof(T) == 8 ? 1e-12 : 1e-4 * (1 + std::abs(expected)));
          // What the loss gains with the number that the row stands for `count` times.
          Column up = column, down = column;
          up.x[i] += step;
          down.x[i] -= step;
          const double slope = (up.loss() - down.loss()) / (2 * step);
          ASSERT_NEAR(d_x[at], slope, 2e-3 * (1 + std::abs(slope))) << at;
          ++i;
        }
      }
    }
  }

  CounterRng rng_;
  const Groups host_;
  const DeviceGroups device_;
  const std::int64_t width_;
  const bool shifted_;
  std::vector<T> x_, d_y_, shift_;
};

TEST(GroupNorm, GivesItsFormulaAndItsGradients) {
  for (const auto& [groups, rows, width] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {1, 7, 3}, {4, 9, 5}, {3, 30, 2}, {300, 310, 1}, {2, 6, 260}}) {
    for (const bool shifted : {false, true}) {
      NormCase<float>(groups, rows, width, shifted).check();
      NormCase<double>(groups, rows, width, shifted).check();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(GroupNorm, DoesNothingWhereThereIsNothing) {
  NormCase<float>(0, 0, 4, true).check();
  NormCase<float>(2, 3, 0, false).check();
}

// y = x * softmax(x / temperature) of one column of one group, and sum d_y * y.
struct Gate {
  std::vector<double> x, d_y, count;
  double temperature;
  double share(std::size_t i) const {
    double sum = 0;
    for (std::size_t j = 0; j < x.size(); ++j)
      sum += count[j] * std::exp((x[j] - x[i]) / temperature);
    return 1 / sum;
  }
  double loss() const {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += d_y[i] * x[i] * share(i);
    return sum;
  }
};

template <typename T>
void expect_gated(std::int64_t group_count, std::int64_t rows, std::int64_t members,
                  std::int64_t channels) {
  SCOPED_TRACE(std::to_string(group_count) + " groups, " + std::to_string(rows) + " rows");
  CounterRng rng(33, static_cast<std::uint64_t>(rows));
  const Groups groups(group_count, rows, rng);
  const DeviceGroups device(groups);
  const std::int64_t plane = rows * channels, of_groups = group_count * channels;
  const auto values = test::random_rows<T>(members * plane, rng),
             d_values = test::random_rows<T>(members * plane, rng);
  std::vector<T> temperatures;
  for (std::int64_t m = 0; m < members; ++m)
    temperatures.push_back(static_cast<T>(m == 1 ? -0.8 : 0.5 + 0.25 * static_cast<double>(m)));
  const test::GuardedArray<T> x(values), d_y(d_values), temperature(temperatures);
  const auto wide = static_cast<std::size_t>(members * of_groups);
  test::GuardedArray<T> top(wide), share(values.size()), y(values.size()), d_x(values.size());
  test::GuardedArray<double> sum(wide), whole(wide), d_temperature(wide),
      parts = device.matrix.parts<double>(members * channels);
  const auto plane_of_parts = static_cast<std::int64_t>(parts.size()) / members;
  const Columns columns{channels, members};
  const Planes<const T> in{x.data(), plane}, d{d_y.data(), plane}, divisor{temperature.data(), 1};
  test::run_both_ways(sum, [&](double* to) {
    launch_softmax_sums<T>(device.pointers(), columns, in, divisor, {top.data(), of_groups},
                           {to, of_groups}, {parts.data(), plane_of_parts}, nullptr);
  });
  test::run_both_ways(y, [&](T* to) {
    launch_softmax_gate<T>(device.pointers(), columns, in, divisor, {top.data(), of_groups},
                           {sum.data(), of_groups}, {share.data(), plane}, {to, plane}, nullptr);
  });
  test::run_both_ways(whole, [&](double* to) {
    launch_softmax_gradient_sums<T>(device.pointers(), columns, in, {share.data(), plane}, d,
                                    divisor, {to, of_groups}, {d_temperature.data(), of_groups},
                                    {parts.data(), plane_of_parts}, nullptr);
  });
  test::run_both_ways(d_x, [&](T* to) {
    launch_softmax_gradient<T>(device.pointers(), columns, in, {share.data(), plane}, d, divisor,
                               {whole.data(), of_groups}, {to, plane}, nullptr);
  });
  for (std::int64_t group = 0; group < group_count; ++group) {
    for (std::int64_t c = 0; c < members * channels; ++c) {
      const std::int64_t m = c / channels, channel = c % channels;
      Gate gate;
      gate.temperature = temperatures[static_cast<std::size_t>(m)];
      std::vector<std::size_t> places;
      for (std::int64_t row = 0; row < rows; ++row) {
        if (groups.of_row[static_cast<std::size_t>(row)] != group) continue;
        places.push_back(static_cast<std::size_t>(m * plane + row * channels + channel));
        gate.x.push_back(values[places.back()]);
        gate.d_y.push_back(d_values[places.back()]);
        gate.count.push_back(groups.count[static_cast<std::size_t>(row)]);
      }
      const double step = 1e-6;
      const auto slope = [&](auto&& change) {
        Gate up = gate, down = gate;
        change(up, step);
        change(down, -step);
        return (up.loss() - down.loss()) / (2 * step);
      };
      for (std::size_t i = 0; i < places.size(); ++i) {
        ASSERT_NEAR(share[places[i]], gate.share(i), sizeof(T) == 8 ? 1e-12 : 1e-5);
        ASSERT_NEAR(y[places[i]], gate.x[i] * gate.share(i), sizeof(T) == 8 ? 1e-12 : 1e-5);
        const double d = slope([&](Gate& changed, double by) { changed.x[i] += by; });
        ASSERT_NEAR(d_x[places[i]], d, 1e-4 * (1 + std::abs(d)));
      }
      const double d = slope([&](Gate& changed, double by) { changed.temperature += by; });
      ASSERT_NEAR(
          d_temperature[static_cast<std::size_t>(m * of_groups + group * channels + channel)], d,
          1e-4 * (1 + std::abs(d)));
    }
  }
}

TEST(GroupSoftmax, GivesItsFormulaAndItsGradients) {
  for (const auto& [groups, rows, members, channels] : std::vector<std::array<std::int64_t, 4>>{
           {1, 1, 1, 1}, {3, 20, 3, 5}, {1, 60, 2, 1}, {270, 280, 1, 2}, {0, 0, 2, 3}}) {
    expect_gated<float>(groups, rows, members, channels);
    expect_gated<double>(groups, rows, members, channels);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tpudist
