#include "models/kernels/row_launches.hpp"

#include <array>

#include "tests/cuda_emulation/kernel_case.hpp"

// models/kernels/products.cu against sums in double, and the bits of its own order of sums.

namespace tpudist {
namespace {

struct Products {
  Products(const WeightGradientSizes& sizes, const std::vector<float>& x,
           const std::vector<float>& d_y)
      : exact(static_cast<std::size_t>(sizes.numbers())), in_order(exact.size()) {
    const std::int64_t rows_of_y = sizes.numbers() / sizes.out;
    for (std::int64_t i = 0; i < rows_of_y; ++i) {
      for (std::int64_t o = 0; o < sizes.out; ++o) {
        const auto at = static_cast<std::size_t>(i * sizes.out + o);
        for (std::int64_t first = 0; first < sizes.rows; first += sizes.chunk_rows()) {
          float chunk = 0;
          for (std::int64_t r = first; r < std::min(sizes.rows, first + sizes.chunk_rows()); ++r) {
            const float left = i == sizes.in ? 1 : x[static_cast<std::size_t>(r * sizes.in + i)];
            const float right = d_y[static_cast<std::size_t>(r * sizes.out + o)];
            chunk = i == sizes.in ? chunk + right : std::fma(left, right, chunk);
            exact[at] += double{left} * right;
          }
          in_order[at] += chunk;
        }
      }
    }
  }
  std::vector<double> exact;
  std::vector<float> in_order;
};

TEST(WeightGradient, IsTheSumOfProductsInItsOrder) {
  for (const auto& [in, out] : std::vector<std::pair<int, int>>{{1, 1},
                                                                {13, 7},
                                                                {64, 1},
                                                                {4, 4},
                                                                {12, 8},
                                                                {64, 64},
                                                                {128, 128},
                                                                {172, 20},
                                                                {128, 132},
                                                                {1024, 1028}}) {
    for (const int rows : {1, 32, 33, 700, 8200}) {
      if (std::int64_t{rows} * in * out > 12'000'000) continue;
      for (const auto& [bias, whole] : {std::pair{false, false}, {true, false}, {false, true}}) {
        const WeightGradientSizes sizes{rows, in, out, bias, whole};
        ASSERT_TRUE(!whole || sizes.chunks() == 1);
        SCOPED_TRACE(testing::Message()
                     << rows << " rows, " << in << " x " << out << bias << whole);
        CounterRng rng(3, static_cast<std::uint64_t>(rows * 1000 + in + out));
        const auto x = test::random_rows<float>(std::int64_t{rows} * in, rng),
                   d_y = test::random_rows<float>(std::int64_t{rows} * out, rng);
        const test::GuardedArray<float> device_x(x), device_d_y(d_y);
        test::GuardedArray<float> y(static_cast<std::size_t>(sizes.numbers())),
            parts(sizes.chunks() == 1 ? 0 : y.size() * static_cast<std::size_t>(sizes.chunks()));
        test::run_both_ways(y, [&](float* to) {
          launch_weight_gradient(sizes, sizes.chunks(), 1, {}, device_x.data(), device_d_y.data(),
                                 to, parts.data(), nullptr);
        });
        const Products expected(sizes, x, d_y);
        test::expect_equal(y, expected.in_order, "in its order");
        // A chain of 8,200 additions rounds more than chunks do.
        if (!whole || rows <= 700) test::expect_near(y, expected.exact, "in double");
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Two planes of 400 rows with three runs each, one of them empty.
TEST(WeightGradient, OfARunIsThatOfItsRowsAlone) {
  CounterRng rng(5, 0);
  const auto x = test::random_rows<float>(2 * 400 * 16, rng),
             d_y = test::random_rows<float>(2 * 400 * 12, rng);
  const std::vector<RowRun> runs{{3, 260}, {263, 0}, {270, 130}};
  const WeightGradientSizes largest{260, 16, 12, true};
  const test::GuardedArray<float> device_x(x), device_d_y(d_y);
  const test::GuardedArray<RowRun> device_runs(runs);
  const std::int64_t numbers = largest.numbers(), chunks = largest.chunks();
  test::GuardedArray<float> y(static_cast<std::size_t>(6 * numbers)),
      parts(static_cast<std::size_t>(6 * numbers * chunks));
  launch_weight_gradient(largest, chunks, 6, {device_runs.data(), 3}, {device_x.data(), 400 * 16},
                         {device_d_y.data(), 400 * 12}, {y.data(), numbers},
                         {parts.data(), numbers * chunks}, nullptr);
  for (std::int64_t leaf = 0; leaf < 6; ++leaf) {
    const RowRun& run = runs[static_cast<std::size_t>(leaf % 3)];
    const WeightGradientSizes sizes{run.count, 16, 12, true};
    const std::int64_t row = leaf / 3 * 400 + run.begin;
    test::GuardedArray<float> own(static_cast<std::size_t>(numbers)),
        own_parts(static_cast<std::size_t>(numbers * sizes.chunks()));
    launch_weight_gradient(sizes, sizes.chunks(), 1, {}, device_x.data() + row * 16,
                           device_d_y.data() + row * 12, own.data(), own_parts.data(), nullptr);
    for (std::int64_t i = 0; i < numbers; ++i)
      EXPECT_EQ(y.data()[leaf * numbers + i], own.data()[i]) << leaf << " " << i;
  }
}

TEST(WeightGradient, OfAMemberDoesNotDependOnTheOthers) {
  const WeightGradientSizes sizes{300, 16, 12, true};
  CounterRng rng(4, 0);
  const auto x = test::random_rows<float>(3 * 300 * 16, rng),
             d_y = test::random_rows<float>(3 * 300 * 12, rng);
  const auto numbers = sizes.numbers(), chunks = sizes.chunks();
  const auto of = [&](int first, int members) {
    const test::GuardedArray<float> device_x(x), device_d_y(d_y);
    test::GuardedArray<float> y(static_cast<std::size_t>(members * numbers)),
        parts(static_cast<std::size_t>(members * numbers * chunks));
    launch_weight_gradient(sizes, chunks, members, {},
                           {device_x.data() + first * 300 * 16, 300 * 16},
                           {device_d_y.data() + first * 300 * 12, 300 * 12}, {y.data(), numbers},
                           {parts.data(), numbers * chunks}, nullptr);
    return std::vector<float>(y.data(), y.data() + y.size());
  };
  const std::vector<float> all = of(0, 3);
  for (int m = 0; m < 3; ++m) {
    const std::vector<float> alone = of(m, 1);
    ASSERT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + m * numbers)) << m;
  }
}

TEST(DoubleProduct, AddsInOrderWhateverTheStrides) {
  for (const auto& [rows, inner, columns] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {5, 0, 3}, {0, 3, 4}, {7, 13, 1}, {1, 300, 64}, {33, 9, 130}}) {
    CounterRng rng(6, static_cast<std::uint64_t>(rows * 100 + columns));
    const auto a = test::random_rows<double>(2 * rows * inner, rng),
               b = test::random_rows<double>(2 * inner * columns, rng);
    std::vector<double> expected;
    for (std::int64_t m = 0; m < 2; ++m) {
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          double sum = 0;  // a lies column by column
          for (std::int64_t k = 0; k < inner; ++k)
            sum += a[static_cast<std::size_t>((m * inner + k) * rows + i)] *
                   b[static_cast<std::size_t>((m * inner + k) * columns + j)];
          expected.push_back(sum);
        }
      }
    }
    const test::GuardedArray<double> device_a(a), device_b(b);
    test::GuardedArray<double> y(expected.size());
    test::run_both_ways(y, [&](double* to) {
      launch_double_product(rows, inner, {columns, 2}, {{device_a.data(), rows * inner}, 1, rows},
                            {{device_b.data(), inner * columns}, columns, 1}, {to, rows * columns},
                            nullptr);
    });
    test::expect_equal(y, expected, "in order");
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tpudist
