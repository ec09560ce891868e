#include "models/kernels/row_launches.hpp"

#include <deque>

#include "models/operators/typed_rows.hpp"
#include "tests/cuda_emulation/kernel_case.hpp"

// The kernels of models/kernels/gather_rows.cu, and those of aggregate.cu in double, against the
// loops of the CPU's operators: bit for bit.

namespace tpudist {
namespace {

template <typename T>
void expect_taken(std::int64_t rows, std::int64_t width, std::size_t slack) {
  SCOPED_TRACE(std::to_string(rows) + " rows, width " + std::to_string(width));
  CounterRng rng(5, static_cast<std::uint64_t>(rows * 1000 + width));
  const std::int64_t sources = rows / 3 + 1;
  std::vector<std::int32_t> index;
  for (std::int64_t i = 0; i < rows; ++i)
    index.push_back(static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(sources))));
  const test::GuardedArray<std::int32_t> device_index(index);
  std::deque<test::GuardedArray<T>> x;
  std::vector<TakenRows<T>> terms;
  std::vector<T> expected(static_cast<std::size_t>(rows * width));
  for (int t = 0; t < 5; ++t) {
    const bool identity = (rows + t) % 2 == 0;
    const auto values = test::random_rows<T>((identity ? rows : sources) * width, rng);
    const std::int32_t* const taken = identity ? nullptr : index.data();
    (t == 0 ? copy_taken<T> : add_taken<T>)(values.data(), taken, rows, width, expected.data());
    x.emplace_back(values, slack);
    terms.push_back({identity ? nullptr : device_index.data(), x.back().data()});
    test::GuardedArray<T> y(expected.size(), slack);
    test::run_both_ways(
        y, [&](T* to) { launch_take<T>(terms.data(), t + 1, rows, width, to, nullptr); });
    test::expect_equal(y, expected, std::to_string(t + 1) + " terms");
  }
}

TEST(TakenRows, EqualTheLoopsOfTheCpu) {
  for (const std::int64_t rows : {0, 1, 3, 17, 300}) {
    for (const std::int64_t width : {0, 1, 4, 15, 64, 300}) {
      for (const std::size_t slack : {0, 1}) {
        expect_taken<float>(rows, width, slack);
        expect_taken<double>(rows, width, slack);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

Csr some_matrix(std::int64_t rows, std::int64_t sources, bool weighted, CounterRng& rng) {
  std::vector<test::CsrEntry> entries;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::uint64_t e = rng.below(6); e > 0; --e)
      entries.push_back({static_cast<std::int32_t>(i),
                         static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(sources))),
                         weighted ? static_cast<float>(1 + rng.below(3)) : 1.0f});
  }
  Csr matrix = test::make_csr(rows, entries);
  if (!weighted) matrix.weight.clear();
  return matrix;
}

std::vector<float> totals_of(const Csr& matrix) {
  std::vector<float> totals;
  for (std::int64_t row = 0; row < matrix.rows(); ++row) {
    float total = 0;
    for (std::int64_t e = matrix.begin[row]; e < matrix.begin[row + 1]; ++e)
      total += matrix.weight_of(e);
    totals.push_back(std::max(total, 1.0f));
  }
  return totals;
}

// In double, where the CPU has its own loops.
void expect_aggregated(std::int64_t rows, std::int64_t width, bool weighted) {
  CounterRng rng(9, static_cast<std::uint64_t>(rows * 1000 + width));
  const std::int64_t sources = rows + 2;
  const Csr matrix = some_matrix(rows, sources, weighted, rng);
  const Csr back = transpose(matrix, sources);
  const test::DeviceMatrix device(matrix), device_back(back);
  const auto values = test::random_rows<double>(sources * width, rng),
             d_y = test::random_rows<double>(rows * width, rng);
  const test::GuardedArray<double> x(values), d(d_y);
  const auto size = static_cast<std::size_t>(rows * width);
  std::vector<double> sums(size), best(size), share = d_y, d_x(values.size());
  test::GuardedArray<double> y(size), most(size), part(size), d_in(values.size());

  add_entries(matrix, 1, 0, rows, values.data(), width, sums.data());
  test::run_both_ways(y, [&](double* to) {
    launch_aggregate(device.pointers(), width, x.data(), to, nullptr, nullptr);
  });
  test::expect_equal(y, sums, "sum");

  divide_by_totals(matrix, 1, 0, rows, width, sums.data());
  const test::GuardedArray<float> total(totals_of(matrix));
  test::run_both_ways(y, [&](double* to) {
    launch_mean<double>(device.pointers(), total.data(), width, x.data(), to, nullptr, nullptr);
  });
  test::expect_equal(y, sums, "mean");

  std::vector<double> shared = d_y;
  divide_by_totals(matrix, 1, 0, rows, width, shared.data());
  add_entries(back, 1, 0, sources, shared.data(), width, d_x.data());
  test::run_both_ways(d_in, [&](double* to) {
    launch_mean_gradient<double>(device_back.pointers(), total.data(), width, d.data(), to, nullptr,
                                 nullptr);
  });
  test::expect_equal(d_in, d_x, "gradient of the mean");

  segment_max(matrix, 1, 0, rows, values.data(), width, best.data());
  test::run_both_ways(most, [&](double* to) {
    launch_max<double>(device.pointers(), width, x.data(), to, nullptr, nullptr);
  });
  test::expect_equal(most, best, "maximum");

  share_of_largest(matrix, 1, 0, rows, values.data(), best.data(), width, share.data());
  test::run_both_ways(part, [&](double* to) {
    launch_max_shares<double>(device.pointers(), width, x.data(), most.data(), d.data(), to,
                              nullptr, nullptr);
  });
  test::expect_equal(part, share, "share");

  gradient_of_largest(back, 1, 0, sources, values.data(), best.data(), share.data(), width,
                      d_x.data());
  test::run_both_ways(d_in, [&](double* to) {
    launch_max_gradient<double>(device_back.pointers(), width, x.data(), most.data(), part.data(),
                                to, nullptr, nullptr);
  });
  test::expect_equal(d_in, d_x, "gradient of the maximum");
}

TEST(TakenRows, AggregateInDoubleAsTheCpu) {
  for (const std::int64_t rows : {0, 1, 7, 300}) {
    for (const std::int64_t width : {1, 5, 64}) {
      expect_aggregated(rows, width, rows % 2 == 0);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// Sums of float32 in double are those of the doubles.
TEST(TakenRows, AggregateFloatsToDoubles) {
  CounterRng rng(3, 1);
  const Csr matrix = some_matrix(40, 50, true, rng);
  const test::DeviceMatrix device(matrix);
  const auto values = test::random_rows<float>(50 * 12, rng);
  const std::vector<double> wide(values.begin(), values.end());
  std::vector<double> expected(40 * 12);
  add_entries(matrix, 1, 0, 40, wide.data(), 12, expected.data());
  const test::GuardedArray<float> x(values);
  test::GuardedArray<double> y(expected.size());
  test::run_both_ways(y, [&](double* to) {
    launch_aggregate(device.pointers(), 12, x.data(), to, nullptr, nullptr);
  });
  test::expect_equal(y, expected, "sum");
}

}  // namespace
}  // namespace tpudist
