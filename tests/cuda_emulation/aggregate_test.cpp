#include "models/kernels/row_launches.hpp"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/cuda_emulation/kernel_case.hpp"
#include "tests/models/plans/make_csr.hpp"
#include "tests/support/expected_fault.hpp"

// The kernels of models/kernels/aggregate.cu over members, long rows and memory that is too short.
// That they give what the CPU gives is seen in tests/models/operators.

namespace tpudist {
namespace {

using test::DeviceMatrix;
using test::GuardedArray;
using test::random_rows;
using test::run_both_ways;

// Planes with something between them, which is not touched.
TEST(Aggregate, ComputesThePlaneOfEveryMember) {
  constexpr std::int64_t kRows = 9, kSources = 7, kMembers = 3;
  CounterRng rng(4, 1);
  const DeviceMatrix matrix(test::random_matrix(kRows, kSources, rng));
  for (const std::int64_t width : {4, 5}) {
    for (const std::int64_t between : {0, 3, 8}) {
      const std::int64_t from = kSources * width + between, to = kRows * width + between;
      const GuardedArray<float> x(random_rows<float>(kMembers * from - between, rng));
      GuardedArray<float> y(static_cast<std::size_t>(kMembers * to - between));
      run_both_ways(y, [&](float* result) {
        launch_aggregate(matrix.pointers(), {width, kMembers}, Planes<const float>{x.data(), from},
                         Planes<float>{result, to}, nullptr, nullptr);
      });
      for (std::int64_t m = 0; m < kMembers; ++m) {
        GuardedArray<float> alone(kRows * static_cast<std::size_t>(width));
        launch_aggregate(matrix.pointers(), width, x.data() + m * from, alone.data(), nullptr,
                         nullptr);
        for (std::int64_t i = 0; i < kRows * width; ++i)
          ASSERT_EQ(y[static_cast<std::size_t>(m * to + i)], alone[static_cast<std::size_t>(i)]);
        for (std::int64_t i = kRows * width; m + 1 < kMembers && i < to; ++i)
          ASSERT_TRUE(std::isnan(y[static_cast<std::size_t>(m * to + i)]));
      }
    }
  }
}

constexpr std::int64_t kChunk = 128, kFewSources = 300;

// Rows of so many entries. Their sources are few, so that rows of the transpose are long too.
Csr matrix_of(const std::vector<std::int64_t>& lengths, bool weighted, CounterRng& rng) {
  Csr matrix;
  matrix.begin.push_back(0);
  for (const std::int64_t length : lengths) {
    for (std::int64_t e = 0; e < length; ++e) {
      matrix.source.push_back(static_cast<std::int32_t>(rng.below(kFewSources)));
      if (weighted) matrix.weight.push_back(static_cast<float>(1 + rng.below(3)));
    }
    matrix.begin.push_back(matrix.entries());
  }
  return matrix;
}

const std::vector<std::int64_t> kLengths = {0, 1, 127, 128, 129, 4800, 0, 20000, 3, 256, 257};

// Small integers: every order of additions gives the same sum, so that rows in chunks must equal
// those in one walk, to the bit, forward and backward.
TEST(LongRows, GiveWhatOneWalkGives) {
  constexpr std::int64_t kMembers = 3;
  CounterRng rng(8, 2);
  for (const bool weighted : {false, true}) {
    const Csr matrix = matrix_of(kLengths, weighted, rng), back = transpose(matrix, kFewSources);
    const std::vector<float> totals(static_cast<std::size_t>(matrix.rows()), 1.0f);
    const GuardedArray<float> total(totals);
    for (const std::int64_t width : {3, 8}) {
      const auto drawn = [&](std::int64_t rows) {
        std::vector<float> values(static_cast<std::size_t>(kMembers * rows * width));
        for (float& value : values) value = static_cast<float>(rng.below(9)) - 4;
        return values;
      };
      const GuardedArray<float> x(drawn(kFewSources)), d_y(drawn(matrix.rows()));
      // Results of all members by matrices in chunks of `length`, one after the other.
      const auto results = [&](std::int64_t length) {
        const DeviceMatrix forward(matrix, length), backward(back, length);
        const Columns columns{width, kMembers};
        std::vector<std::vector<float>> all;
        const auto run = [&](const DeviceMatrix& on, const auto& launch) {
          const std::int64_t plane = (static_cast<std::int64_t>(on.begin.size()) - 1) * width;
          GuardedArray<float> parts = on.parts<float>(kMembers * width),
                              y(static_cast<std::size_t>(kMembers * plane));
          const auto apart = static_cast<std::int64_t>(parts.size()) / kMembers;
          run_both_ways(y, [&](float* to) {
            launch(on.pointers(), Planes<float>{to, plane}, Planes<float>{parts.data(), apart});
          });
          all.emplace_back(y.values().begin(), y.values().end());
        };
        const std::int64_t in = kFewSources * width, out = matrix.rows() * width;
        const Planes<const float> from{x.data(), in}, d{d_y.data(), out};
        run(forward, [&](const CsrPointers& on, Planes<float> y, Planes<float> parts) {
          launch_aggregate(on, columns, from, y, parts, nullptr);
        });
        run(backward, [&](const CsrPointers& on, Planes<float> y, Planes<float> parts) {
          launch_mean_gradient<float>(on, total.data(), columns, d, y, parts, nullptr);
        });
        run(forward, [&](const CsrPointers& on, Planes<float> y, Planes<float> parts) {
          launch_max<float>(on, columns, from, y, parts, nullptr);
        });
        const GuardedArray<float> best(all.back());
        const Planes<const float> most{best.data(), out};
        run(forward, [&](const CsrPointers& on, Planes<float> y, Planes<float> parts) {
          launch_max_shares<float>(on, columns, from, most, d, y, parts, nullptr);
        });
        // Whole numbers for the shares: sums of thirds would depend on the order.
        run(backward, [&](const CsrPointers& on, Planes<float> y, Planes<float> parts) {
          launch_max_gradient<float>(on, columns, from, most, d, y, parts, nullptr);
        });
        return all;
      };
      EXPECT_EQ(results(kChunk), results(matrix.entries()));
    }
  }
}

// What a row gives depends on its own entries alone, however long the others are.
TEST(LongRows, LeaveOtherRowsAsTheyAre) {
  CounterRng rng(9, 2);
  const Csr matrix = matrix_of(kLengths, true, rng);
  const GuardedArray<float> x(random_rows<float>(kFewSources * 4, rng));
  const auto summed = [&](const Csr& of) {
    const DeviceMatrix device(of, kChunk);
    GuardedArray<float> y(static_cast<std::size_t>(of.rows() * 4)), parts = device.parts<float>(4);
    const std::int64_t before = emulation::launches;
    launch_aggregate(device.pointers(), 4, x.data(), y.data(), parts.data(), nullptr);
    const bool has_long = device.row.size() > 0;
    EXPECT_EQ(emulation::launches - before, has_long ? 2 : 1);
    return std::vector<float>(y.values().begin(), y.values().end());
  };
  const std::vector<float> together = summed(matrix);
  for (std::int64_t row = 0; row < matrix.rows(); ++row) {
    const auto first = matrix.begin[static_cast<std::size_t>(row)],
               last = matrix.begin[static_cast<std::size_t>(row) + 1];
    const Csr alone{{0, last - first},
                    {matrix.source.begin() + first, matrix.source.begin() + last},
                    {matrix.weight.begin() + first, matrix.weight.begin() + last}};
    EXPECT_EQ(summed(alone),
              std::vector<float>(together.begin() + 4 * row, together.begin() + 4 * row + 4));
  }
}

TEST(LongRows, AreCutFromTheirFirstEntry) {
  CounterRng rng(10, 2);
  const LongRows split = split_long_rows(matrix_of({2, 5, 0, 4, 9}, false, rng), 4);
  EXPECT_EQ(split.row, (std::vector<std::int32_t>{1, 4}));
  EXPECT_EQ(split.begin, (std::vector<std::int64_t>{0, 2, 5}));
  EXPECT_EQ(split.chunk_row, (std::vector<std::int32_t>{1, 1, 4, 4, 4}));
  EXPECT_EQ(split.chunk_begin, (std::vector<std::int64_t>{2, 6, 11, 15, 19}));
}

TEST(SumOfRows, AddsUpByChunksOfChunks) {
  CounterRng rng(11, 2);
  for (const std::int64_t rows : {0, 1, 127, 128, 129, 4800, 20000}) {
    for (const std::int64_t width : {1, 4, 5}) {
      constexpr std::int64_t kMembers = 2;
      const std::vector<double> values = random_rows<double>(kMembers * rows * width, rng);
      const GuardedArray<double> x(values);
      const std::int64_t plane = summed_parts(rows) * width;
      GuardedArray<double> parts(static_cast<std::size_t>(kMembers * plane)),
          y(static_cast<std::size_t>(kMembers * width));
      const std::int64_t before = emulation::launches;
      run_both_ways(y, [&](double* to) {
        launch_sum_of_rows<double>(rows, {width, kMembers}, {x.data(), rows * width}, {to, width},
                                   {parts.data(), plane}, nullptr);
      });
      EXPECT_EQ(emulation::launches - before, 2 * (rows <= 128 ? 1 : rows <= 128 * 128 ? 2 : 3));
      std::vector<double> expected(y.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i), member = at / (rows * width);
        expected[static_cast<std::size_t>(member * width + at % width)] += values[i];
      }
      test::expect_near(y, expected, "sum of rows");
    }
  }
}

// The harness sees a kernel that is given less memory than it writes or reads.
TEST(AggregateDeathTest, EndsWhereMemoryIsTooShort) {
  const Csr matrix =
      test::make_csr(4, std::vector<test::CsrEntry>{{0, 1, 1}, {2, 0, 1}, {3, 2, 1}});
  const DeviceMatrix device(matrix);
  GuardedArray<float> three(3 * 8), four(4 * 8);
  launch_aggregate(device.pointers(), 8, three.data(), four.data(), nullptr, nullptr);
  TPUDIST_EXPECT_FAULT(
      launch_aggregate(device.pointers(), 8, three.data(), three.data(), nullptr, nullptr), "");
  GuardedArray<float> two(2 * 8);
  TPUDIST_EXPECT_FAULT(
      launch_aggregate(device.pointers(), 8, two.data(), four.data(), nullptr, nullptr), "");
  CsrPointers long_matrix = device.pointers();
  ++long_matrix.rows;
  GuardedArray<float> five(5 * 8);
  TPUDIST_EXPECT_FAULT(
      launch_aggregate(long_matrix, 8, three.data(), five.data(), nullptr, nullptr), "");
}

}  // namespace
}  // namespace tpudist
