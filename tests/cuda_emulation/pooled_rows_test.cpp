#include "models/kernels/row_launches.hpp"

#include <limits>
#include <map>

#include "tests/cuda_emulation/kernel_case.hpp"

// The kernels of pooled_rows.cu against pooling written plainly: each configuration as a list of
// rows with how many nodes they stand for.

namespace tpudist {
namespace {

struct Shape {
  std::int64_t rows, cells, slates, configs;
  std::string text() const {
    return std::to_string(rows) + " rows, " + std::to_string(cells) + " cells, " +
           std::to_string(configs) + " configurations";
  }
};

// A readout whose cells and common rows are drawn at random.
struct HostReadout {
  HostReadout(const Shape& shape, CounterRng& rng)
      : cells(draw(shape.cells, shape.rows, true, rng)),
        common(draw(shape.slates, shape.rows, true, rng)),
        scores(draw(shape.configs, shape.cells, false, rng)),
        rows_of_cells(transpose(cells, shape.rows)),
        rows_of_common(transpose(common, shape.rows)),
        configs_of_cell(transpose(scores, shape.cells)) {
    for (std::int64_t k = 0; k < shape.configs; ++k)
      slate.push_back(
          static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(shape.slates))));
    configs_of_slate = transpose_index(slate, shape.slates);
    for (std::int64_t k = 0; k < shape.configs; ++k) {
      double sum = 0;
      for (const auto& [row, weight] : nodes_of(k)) sum += weight;
      nodes.push_back(sum);
    }
  }

  // Each row of the matrix takes some sources, at least one.
  static Csr draw(std::int64_t rows, std::int64_t sources, bool weighted, CounterRng& rng) {
    std::vector<test::CsrEntry> entries;
    for (std::int64_t i = 0; i < rows; ++i) {
      std::map<std::int32_t, float> own;
      for (std::uint64_t n = 1 + rng.below(5); n > 0; --n)
        own[static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(sources)))] =
            weighted ? static_cast<float>(1 + rng.below(3)) : 1.0f;
      for (const auto& [source, weight] : own)
        entries.push_back({static_cast<std::int32_t>(i), source, weight});
    }
    Csr matrix = test::make_csr(rows, entries);
    if (!weighted) matrix.weight.clear();
    return matrix;
  }

  // The rows of a configuration, with how many nodes each stands for.
  std::vector<std::pair<std::int64_t, double>> nodes_of(std::int64_t config) const {
    std::vector<std::pair<std::int64_t, double>> all;
    const auto add = [&](const Csr& matrix, std::int64_t i) {
      for (std::int64_t e = matrix.begin[static_cast<std::size_t>(i)];
           e < matrix.begin[static_cast<std::size_t>(i) + 1]; ++e)
        all.emplace_back(matrix.source[static_cast<std::size_t>(e)], matrix.weight_of(e));
    };
    add(common, slate[static_cast<std::size_t>(config)]);
    for (std::int64_t e = scores.begin[static_cast<std::size_t>(config)];
         e < scores.begin[static_cast<std::size_t>(config) + 1]; ++e)
      add(cells, scores.source[static_cast<std::size_t>(e)]);
    return all;
  }

  Csr cells, common, scores, rows_of_cells, rows_of_common, configs_of_cell, configs_of_slate;
  std::vector<std::int32_t> slate;
  std::vector<double> nodes;
};

// Cells and common rows of more than two rows are long.
struct DeviceReadout {
  explicit DeviceReadout(const HostReadout& host)
      : cells(host.cells, 2),
        rows_of_cells(host.rows_of_cells),
        common(host.common, 2),
        rows_of_common(host.rows_of_common),
        scores(host.scores),
        configs_of_cell(host.configs_of_cell),
        configs_of_slate(host.configs_of_slate),
        slate(host.slate),
        nodes(host.nodes) {}
  ReadoutPointers pointers() const {
    return {cells.pointers(),
            rows_of_cells.pointers(),
            common.pointers(),
            rows_of_common.pointers(),
            scores.pointers(),
            configs_of_cell.pointers(),
            configs_of_slate.pointers(),
            slate.data(),
            nodes.data()};
  }
  test::DeviceMatrix cells, rows_of_cells, common, rows_of_common, scores, configs_of_cell,
      configs_of_slate;
  test::GuardedArray<std::int32_t> slate;
  test::GuardedArray<double> nodes;
};

template <typename T>
class PoolCase {
 public:
  PoolCase(const Shape& shape, std::int64_t width)
      : shape_(shape),
        width_(width),
        rng_(17, static_cast<std::uint64_t>(shape.rows * 10 + width)),
        host_(shape, rng_),
        device_(host_),
        x_(test::random_rows<T>(shape.rows * width, rng_)),
        d_y_(test::random_rows<double>(shape.configs * width, rng_)),
        device_x_(x_),
        device_d_y_(d_y_) {}

  void check() {
    SCOPED_TRACE(shape_.text() + ", width " + std::to_string(width_));
    for (const bool mean : {false, true}) check_sum(mean);
    check_max();
  }

 private:
  std::size_t size(std::int64_t rows) const { return static_cast<std::size_t>(rows * width_); }
  T x(std::int64_t row, std::int64_t c) const {
    return x_[static_cast<std::size_t>(row * width_ + c)];
  }

  void check_sum(bool mean) {
    const ReadoutPointers readout = device_.pointers();
    test::GuardedArray<double> cells(size(shape_.cells)), common(size(shape_.slates)),
        y(size(shape_.configs));
    test::GuardedArray<double> cell_parts = device_.cells.parts<double>(width_),
                               common_parts = device_.common.parts<double>(width_);
    launch_aggregate(readout.cells, width_, device_x_.data(), cells.data(), cell_parts.data(),
                     nullptr);
    launch_aggregate(readout.common, width_, device_x_.data(), common.data(), common_parts.data(),
                     nullptr);
    const ReadoutParts parts{cells.data(), common.data()};
    test::run_both_ways(
        y, [&](double* to) { launch_read_out(readout, width_, parts, mean, to, nullptr); });
    std::vector<double> expected(size(shape_.configs)), d_x(size(shape_.rows));
    for (std::int64_t k = 0; k < shape_.configs; ++k) {
      const double divisor = mean ? host_.nodes[static_cast<std::size_t>(k)] : 1;
      for (const auto& [row, weight] : host_.nodes_of(k)) {
        for (std::int64_t c = 0; c < width_; ++c) {
          const auto at = static_cast<std::size_t>(k * width_ + c);
          expected[at] += weight * x(row, c) / divisor;
          d_x[static_cast<std::size_t>(row * width_ + c)] += weight * d_y_[at] / divisor;
        }
      }
    }
    test::expect_near(y, expected, "sum");

    test::run_both_ways(common, [&](double*) {
      launch_spread_scores(readout, width_, device_d_y_.data(), mean, parts, nullptr);
    });
    test::GuardedArray<T> gradient(size(shape_.rows));
    test::run_both_ways(
        gradient, [&](T* to) { launch_spread_parts<T>(readout, width_, parts, to, nullptr); });
    test::expect_near(gradient, d_x, "gradient of the sum");
  }

  void check_max() {
    const ReadoutPointers readout = device_.pointers();
    test::GuardedArray<double> best_cell(size(shape_.cells)), cell_ties(size(shape_.cells)),
        best_common(size(shape_.slates)), common_ties(size(shape_.slates)),
        cell_share(size(shape_.cells)), common_share(size(shape_.slates)), y(size(shape_.configs)),
        part(size(shape_.configs)), cell_parts = device_.cells.parts<double>(width_),
                                    common_parts = device_.common.parts<double>(width_);
    test::run_both_ways(best_cell, [&](double* to) {
      launch_pool_max<T>(readout.cells, width_, device_x_.data(), to, cell_ties.data(),
                         cell_parts.data(), nullptr);
    });
    launch_pool_max<T>(readout.common, width_, device_x_.data(), best_common.data(),
                       common_ties.data(), common_parts.data(), nullptr);
    const ReadoutParts best{best_cell.data(), best_common.data()},
        ties{cell_ties.data(), common_ties.data()}, share{cell_share.data(), common_share.data()};
    test::run_both_ways(
        y, [&](double* to) { launch_read_out_max(readout, width_, best, to, nullptr); });
    std::vector<double> expected(size(shape_.configs)), d_x(size(shape_.rows));
    for (std::int64_t k = 0; k < shape_.configs; ++k) {
      for (std::int64_t c = 0; c < width_; ++c) {
        double top = -std::numeric_limits<double>::infinity(), reached = 0;
        for (const auto& [row, weight] : host_.nodes_of(k)) top = std::max<double>(top, x(row, c));
        for (const auto& [row, weight] : host_.nodes_of(k))
          reached += x(row, c) == top ? weight : 0;
        const auto at = static_cast<std::size_t>(k * width_ + c);
        expected[at] = top;
        for (const auto& [row, weight] : host_.nodes_of(k)) {
          if (x(row, c) == top)
            d_x[static_cast<std::size_t>(row * width_ + c)] += weight * d_y_[at] / reached;
        }
      }
    }
    test::expect_equal(y, expected, "maximum");

    test::run_both_ways(part, [&](double* to) {
      launch_max_parts(readout, width_, best, ties, y.data(), device_d_y_.data(), to, nullptr);
    });
    test::run_both_ways(cell_share, [&](double* to) {
      launch_max_parts_of(readout.configs_of_cell, width_, best.cells, y.data(), part.data(), to,
                          nullptr);
    });
    test::run_both_ways(common_share, [&](double* to) {
      launch_max_parts_of(readout.configs_of_slate, width_, best.common, y.data(), part.data(), to,
                          nullptr);
    });
    test::GuardedArray<T> gradient(size(shape_.rows));
    test::run_both_ways(gradient, [&](T* to) {
      launch_spread_shares<T>(readout, width_, device_x_.data(), best, share, to, nullptr);
    });
    test::expect_near(gradient, d_x, "gradient of the maximum");
  }

  const Shape shape_;
  const std::int64_t width_;
  CounterRng rng_;
  const HostReadout host_;
  const DeviceReadout device_;
  const std::vector<T> x_;
  const std::vector<double> d_y_;
  const test::GuardedArray<T> device_x_;
  const test::GuardedArray<double> device_d_y_;
};

TEST(PooledRows, EqualPoolingWrittenPlainly) {
  for (const Shape& shape : std::vector<Shape>{
           {1, 1, 1, 1}, {7, 5, 2, 3}, {300, 40, 3, 280}, {9, 270, 1, 6}, {4, 3, 1, 0}}) {
    for (const std::int64_t width : {1, 6, 270}) {
      PoolCase<float>(shape, width).check();
      PoolCase<double>(shape, width).check();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// A NaN is the maximum of all that see it, and gets no gradient.
TEST(PooledRows, HandOnWhatIsNoNumber) {
  const Csr matrix =
      test::make_csr(2, std::vector<test::CsrEntry>{{0, 0, 1}, {0, 1, 2}, {1, 1, 1}, {1, 2, 1}});
  const test::GuardedArray<float> x(
      std::vector<float>{1, 3, std::numeric_limits<float>::quiet_NaN()});
  for (const std::int64_t length : {1, 2}) {
    const test::DeviceMatrix device(matrix, length);
    test::GuardedArray<double> best(2), ties(2), parts = device.parts<double>(1);
    launch_pool_max<float>(device.pointers(), 1, x.data(), best.data(), ties.data(), parts.data(),
                           nullptr);
    EXPECT_EQ(best[0], 3);
    EXPECT_EQ(ties[0], 2);
    EXPECT_TRUE(std::isnan(best[1]));
    EXPECT_EQ(ties[1], 0);
  }
}

}  // namespace
}  // namespace tpudist
