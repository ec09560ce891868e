#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "models/kernels/row_launches.hpp"
#include "tests/cuda_emulation/kernel_case.hpp"

// Kernels of gather_rows.cu, aggregate.cu, group_norm.cu, group_softmax.cu and pooled_rows.cu touch
// nothing beside their arrays, and give the same in both orders of their threads. What they give is
// seen in tests/models/operators and, for every kernel, in tests/gpu_check.

namespace tpudist {
namespace {

using test::DeviceMatrix;
using test::GuardedArray;
using test::random_matrix;
using test::random_rows;
using test::run_both_ways;

std::size_t length(std::int64_t rows, std::int64_t width) {
  return static_cast<std::size_t>(rows * width);
}

std::vector<std::int32_t> random_index(std::int64_t rows, std::int64_t sources, CounterRng& rng) {
  std::vector<std::int32_t> index;
  for (std::int64_t i = 0; i < rows; ++i)
    index.push_back(static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(sources))));
  return index;
}

template <typename T>
void take(std::int64_t rows, std::int64_t width, std::size_t slack) {
  CounterRng rng(5, static_cast<std::uint64_t>(rows * 1000 + width));
  const std::int64_t sources = rows / 3 + 1;
  const GuardedArray<std::int32_t> index(random_index(rows, sources, rng));
  const GuardedArray<T> taken(random_rows<T>(sources * width, rng), slack),
      own(random_rows<T>(rows * width, rng), slack);
  GuardedArray<T> y(length(rows, width), slack);
  const TakenRows<T> terms[] = {{index.data(), taken.data()},
                                {nullptr, own.data()},
                                {index.data(), taken.data()},
                                {nullptr, own.data()},
                                {index.data(), taken.data()}};
  for (int count = 1; count <= 5; ++count)
    run_both_ways(y, [&](T* to) { launch_take<T>(terms, count, rows, width, to, nullptr); });
}

TEST(KernelMemory, OfTakenRows) {
  for (const std::int64_t rows : {0, 1, 3, 17, 300}) {
    for (const std::int64_t width : {0, 1, 4, 15, 64, 300}) {
      for (const std::size_t slack : {0, 1}) {
        take<float>(rows, width, slack);
        take<double>(rows, width, slack);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

template <typename T>
void aggregate(std::int64_t rows, std::int64_t width, std::size_t slack) {
  CounterRng rng(9, static_cast<std::uint64_t>(rows * 1000 + width));
  const std::int64_t sources = rows / 2 + 3;
  const Csr matrix = random_matrix(rows, sources, rng);
  const DeviceMatrix device(matrix), back(transpose(matrix, sources));
  const GuardedArray<T> x(random_rows<T>(sources * width, rng), slack),
      d_y(random_rows<T>(rows * width, rng), slack);
  const GuardedArray<float> floats(random_rows<float>(sources * width, rng), slack),
      total(std::vector<float>(static_cast<std::size_t>(rows), 2.0f));
  GuardedArray<T> y(length(rows, width), slack), best(y.size(), slack), share(y.size(), slack),
      d_x(length(sources, width), slack);
  run_both_ways(y, [&](T* to) {
    launch_aggregate(device.pointers(), width, x.data(), to, nullptr, nullptr);
  });
  run_both_ways(y, [&](T* to) {
    launch_aggregate(device.pointers(), width, floats.data(), to, nullptr, nullptr);
  });
  run_both_ways(y, [&](T* to) {
    launch_mean<T>(device.pointers(), total.data(), width, x.data(), to, nullptr, nullptr);
  });
  run_both_ways(d_x, [&](T* to) {
    launch_mean_gradient<T>(back.pointers(), total.data(), width, d_y.data(), to, nullptr, nullptr);
  });
  run_both_ways(best, [&](T* to) {
    launch_max<T>(device.pointers(), width, x.data(), to, nullptr, nullptr);
  });
  run_both_ways(share, [&](T* to) {
    launch_max_shares<T>(device.pointers(), width, x.data(), best.data(), d_y.data(), to, nullptr,
                         nullptr);
  });
  run_both_ways(d_x, [&](T* to) {
    launch_max_gradient<T>(back.pointers(), width, x.data(), best.data(), share.data(), to, nullptr,
                           nullptr);
  });
}

TEST(KernelMemory, OfAggregates) {
  for (const std::int64_t rows : {0, 1, 2, 17, 63, 300}) {
    for (const std::int64_t width : {0, 1, 2, 3, 4, 5, 8, 16, 33, 64, 100, 260, 1028}) {
      for (const std::size_t slack : {0, 1}) {
        aggregate<float>(rows, width, slack);
        aggregate<double>(rows, width, slack);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// More rows than a block has threads, and short rows, many of which make a block.
TEST(KernelMemory, OfManyRows) {
  for (const std::int64_t width : {1, 4, 8}) aggregate<float>(3000, width, 0);
}

// Rows in groups, each of which has a row. Groups of more than 8 rows are long.
struct Groups {
  Groups(std::int64_t groups, std::int64_t rows, CounterRng& rng)
      : Groups(groups, index_of(groups, rows, rng)) {}
  Groups(std::int64_t groups, const std::vector<std::int32_t>& index)
      : matrix(transpose_index(index, groups), 8),
        of_row(index),
        count(std::vector<float>(index.size(), 2.0f)),
        size(std::vector<double>(static_cast<std::size_t>(groups), 12.0)) {}
  static std::vector<std::int32_t> index_of(std::int64_t groups, std::int64_t rows,
                                            CounterRng& rng) {
    std::vector<std::int32_t> index = random_index(rows, std::max<std::int64_t>(groups, 1), rng);
    for (std::int64_t g = 0; g < groups; ++g)
      index[static_cast<std::size_t>(g)] = static_cast<std::int32_t>(g);
    return index;
  }
  GroupPointers pointers() const {
    return {matrix.pointers(), of_row.data(), count.data(), size.data(),
            static_cast<std::int64_t>(of_row.size())};
  }
  DeviceMatrix matrix;
  GuardedArray<std::int32_t> of_row;
  GuardedArray<float> count;
  GuardedArray<double> size;
};

template <typename T>
void normalise(std::int64_t number, std::int64_t rows, std::int64_t width, bool shifted) {
  CounterRng rng(21, static_cast<std::uint64_t>(rows * 100 + width));
  const Groups groups(number, rows, rng);
  const GuardedArray<T> x(random_rows<T>(rows * width, rng)),
      d_y(random_rows<T>(rows * width, rng)), shift(random_rows<T>(width, rng));
  const T* const shifts = shifted ? shift.data() : nullptr;
  const std::size_t wide = length(number, width);
  GuardedArray<double> mean(wide), scale(wide), along(wide), constant(wide), d_shift(wide),
      parts = groups.matrix.parts<double>(width);
  GuardedArray<T> y(x.size());
  run_both_ways(scale, [&](double* to) {
    launch_group_statistics<T>(groups.pointers(), width, x.data(), shifts, 1e-3, mean.data(), to,
                               parts.data(), nullptr);
  });
  run_both_ways(y, [&](T* to) {
    launch_normalise<T>(groups.pointers(), width, x.data(), shifts, mean.data(), scale.data(), to,
                        nullptr);
  });
  const NormGradient gradient{along.data(), constant.data(), shifted ? d_shift.data() : nullptr};
  run_both_ways(constant, [&](double*) {
    launch_norm_sums<T>(groups.pointers(), width, x.data(), d_y.data(), shifts, mean.data(),
                        scale.data(), gradient, parts.data(), nullptr);
  });
  run_both_ways(y, [&](T* to) {
    launch_norm_gradient<T>(groups.pointers(), width, x.data(), d_y.data(), shifts, mean.data(),
                            scale.data(), gradient, to, nullptr);
  });
}

TEST(KernelMemory, OfGroupNorms) {
  for (const auto& [groups, rows, width] : std::vector<std::array<std::int64_t, 3>>{{0, 0, 4},
                                                                                    {2, 3, 0},
                                                                                    {1, 1, 1},
                                                                                    {1, 7, 3},
                                                                                    {4, 9, 5},
                                                                                    {3, 30, 2},
                                                                                    {300, 310, 1},
                                                                                    {2, 6, 260}}) {
    for (const bool shifted : {false, true}) {
      normalise<float>(groups, rows, width, shifted);
      normalise<double>(groups, rows, width, shifted);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

template <typename T>
void gate(std::int64_t number, std::int64_t rows, std::int64_t members, std::int64_t channels) {
  CounterRng rng(33, static_cast<std::uint64_t>(rows));
  const Groups groups(number, rows, rng);
  const std::int64_t plane = rows * channels, of_groups = number * channels;
  const GuardedArray<T> x(random_rows<T>(members * plane, rng)),
      d_y(random_rows<T>(members * plane, rng)),
      temperature(std::vector<T>(static_cast<std::size_t>(members), T{0.5}));
  const std::size_t wide = length(members, of_groups);
  GuardedArray<T> top(wide), share(x.size()), y(x.size());
  GuardedArray<double> sum(wide), whole(wide), d_temperature(wide),
      parts = groups.matrix.parts<double>(members * channels);
  const Columns columns{channels, members};
  const Planes<const T> in{x.data(), plane}, d{d_y.data(), plane}, divisor{temperature.data(), 1};
  const Planes<double> part{parts.data(), static_cast<std::int64_t>(parts.size()) / members};
  run_both_ways(sum, [&](double* to) {
    launch_softmax_sums<T>(groups.pointers(), columns, in, divisor, {top.data(), of_groups},
                           {to, of_groups}, part, nullptr);
  });
  run_both_ways(y, [&](T* to) {
    launch_softmax_gate<T>(groups.pointers(), columns, in, divisor, {top.data(), of_groups},
                           {sum.data(), of_groups}, {share.data(), plane}, {to, plane}, nullptr);
  });
  run_both_ways(whole, [&](double* to) {
    launch_softmax_gradient_sums<T>(groups.pointers(), columns, in, {share.data(), plane}, d,
                                    divisor, {to, of_groups}, {d_temperature.data(), of_groups},
                                    part, nullptr);
  });
  run_both_ways(y, [&](T* to) {
    launch_softmax_gradient<T>(groups.pointers(), columns, in, {share.data(), plane}, d, divisor,
                               {whole.data(), of_groups}, {to, plane}, nullptr);
  });
}

TEST(KernelMemory, OfSoftmaxGates) {
  for (const auto& [groups, rows, members, channels] : std::vector<std::array<std::int64_t, 4>>{
           {1, 1, 1, 1}, {3, 20, 3, 5}, {1, 60, 2, 1}, {270, 280, 1, 2}, {0, 0, 2, 3}}) {
    gate<float>(groups, rows, members, channels);
    gate<double>(groups, rows, members, channels);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Cells and common rows of more than two rows are long.
template <typename T>
void pool(std::int64_t rows, std::int64_t cells, std::int64_t slates, std::int64_t configs,
          std::int64_t width) {
  CounterRng rng(17, static_cast<std::uint64_t>(rows * 10 + width));
  const Csr of_cells = random_matrix(cells, rows, rng),
            of_slates = random_matrix(slates, rows, rng);
  Csr scores = random_matrix(configs, cells, rng);
  scores.weight.clear();
  const std::vector<std::int32_t> slates_of = random_index(configs, slates, rng);
  const DeviceMatrix cell(of_cells, 2), common(of_slates, 2),
      rows_of_cells(transpose(of_cells, rows)), rows_of_common(transpose(of_slates, rows)),
      score(scores), configs_of_cell(transpose(scores, cells)),
      configs_of_slate(transpose_index(slates_of, slates));
  const GuardedArray<std::int32_t> slate(slates_of);
  const GuardedArray<double> nodes(std::vector<double>(slates_of.size(), 7.0));
  const ReadoutPointers readout{cell.pointers(),
                                rows_of_cells.pointers(),
                                common.pointers(),
                                rows_of_common.pointers(),
                                score.pointers(),
                                configs_of_cell.pointers(),
                                configs_of_slate.pointers(),
                                slate.data(),
                                nodes.data()};
  const GuardedArray<T> x(random_rows<T>(rows * width, rng));
  const GuardedArray<double> d_y(random_rows<double>(configs * width, rng));
  GuardedArray<double> y(d_y.size()), part(d_y.size()), in_cells(length(cells, width)),
      ties_of_cells(in_cells.size()), shares_of_cells(in_cells.size()),
      in_common(length(slates, width)), ties_of_common(in_common.size()),
      shares_of_common(in_common.size()), cell_parts = cell.parts<double>(width),
                                          common_parts = common.parts<double>(width);
  GuardedArray<T> d_x(x.size());
  const ReadoutParts parts{in_cells.data(), in_common.data()},
      ties{ties_of_cells.data(), ties_of_common.data()},
      shares{shares_of_cells.data(), shares_of_common.data()};
  for (const bool mean : {false, true}) {
    run_both_ways(in_cells, [&](double* to) {
      launch_aggregate(readout.cells, width, x.data(), to, cell_parts.data(), nullptr);
    });
    run_both_ways(in_common, [&](double* to) {
      launch_aggregate(readout.common, width, x.data(), to, common_parts.data(), nullptr);
    });
    run_both_ways(y,
                  [&](double* to) { launch_read_out(readout, width, parts, mean, to, nullptr); });
    run_both_ways(in_common, [&](double*) {
      launch_spread_scores(readout, width, d_y.data(), mean, parts, nullptr);
    });
    run_both_ways(d_x, [&](T* to) { launch_spread_parts<T>(readout, width, parts, to, nullptr); });
  }
  run_both_ways(in_cells, [&](double* to) {
    launch_pool_max<T>(readout.cells, width, x.data(), to, ties.cells, cell_parts.data(), nullptr);
  });
  run_both_ways(in_common, [&](double* to) {
    launch_pool_max<T>(readout.common, width, x.data(), to, ties.common, common_parts.data(),
                       nullptr);
  });
  run_both_ways(y, [&](double* to) { launch_read_out_max(readout, width, parts, to, nullptr); });
  run_both_ways(part, [&](double* to) {
    launch_max_parts(readout, width, parts, ties, y.data(), d_y.data(), to, nullptr);
  });
  run_both_ways(shares_of_cells, [&](double* to) {
    launch_max_parts_of(readout.configs_of_cell, width, parts.cells, y.data(), part.data(), to,
                        nullptr);
  });
  run_both_ways(shares_of_common, [&](double* to) {
    launch_max_parts_of(readout.configs_of_slate, width, parts.common, y.data(), part.data(), to,
                        nullptr);
  });
  run_both_ways(d_x, [&](T* to) {
    launch_spread_shares<T>(readout, width, x.data(), parts, shares, to, nullptr);
  });
}

TEST(KernelMemory, OfPooledRows) {
  for (const auto& [rows, cells, slates, configs] : std::vector<std::array<std::int64_t, 4>>{
           {1, 1, 1, 1}, {7, 5, 2, 3}, {300, 40, 3, 280}, {9, 270, 1, 6}, {4, 3, 1, 0}}) {
    for (const std::int64_t width : {1, 6, 270}) {
      pool<float>(rows, cells, slates, configs, width);
      pool<double>(rows, cells, slates, configs, width);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// A NaN is the maximum of all that see it, and gets no gradient.
TEST(PooledRows, HandOnWhatIsNoNumber) {
  const Csr matrix =
      test::make_csr(2, std::vector<test::CsrEntry>{{0, 0, 1}, {0, 1, 2}, {1, 1, 1}, {1, 2, 1}});
  const GuardedArray<float> x(std::vector<float>{1, 3, std::numeric_limits<float>::quiet_NaN()});
  for (const std::int64_t length : {1, 2}) {
    const DeviceMatrix device(matrix, length);
    GuardedArray<double> best(2), ties(2), parts = device.parts<double>(1);
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
