#include "models/kernels/row_launches.hpp"

#include <algorithm>
#include <limits>

#include "models/operators/vector_loops.hpp"
#include "tests/cuda_emulation/kernel_case.hpp"

// Dropout on the device draws the masks of the CPU (models/operators/cpu_drop.cpp), bit for bit.

namespace tpudist {
namespace {

struct Draw {
  std::int64_t rows, members, channels;
  double rate;
  bool whole_rows = false;
};

// A row of one member by the functions of the CPU.
template <typename T>
void drop_row(const Draw& draw, std::uint64_t row_key, std::uint64_t member_key, const T* x, T* y) {
  const auto low = [](std::uint64_t key) { return static_cast<std::uint32_t>(key); };
  if (draw.whole_rows) {
    PhiloxWords bits;
    philox({low(row_key), low(row_key >> 32), 7, 0}, {low(member_key), low(member_key >> 32)},
           bits);
    const bool lost = static_cast<long>(bits[0][0] & 0xffffu) < std::lround(draw.rate * 65536);
    for (std::int64_t c = 0; c < draw.channels; ++c) y[c] = x[c] * static_cast<T>(lost ? 0 : 1);
    return;
  }
  for (std::int64_t first = 0; first < draw.channels; first += 8 * kPhiloxLanes) {
    PhiloxWords bits;
    philox({low(row_key), low(row_key >> 32), 7, static_cast<std::uint32_t>(first / 8)},
           {low(member_key), low(member_key >> 32)}, bits);
    for (std::int64_t half = 0; half < 8; ++half) {
      const std::int64_t begin = first + half * kPhiloxLanes;
      if (begin >= draw.channels) break;
      keep_lanes(bits[static_cast<std::size_t>(half / 2)].data(), static_cast<int>(16 * (half % 2)),
                 static_cast<std::uint32_t>(std::lround(draw.rate * 65536)), x + begin,
                 static_cast<T>(1 / (1 - draw.rate)),
                 static_cast<int>(std::min<std::int64_t>(kPhiloxLanes, draw.channels - begin)),
                 y + begin);
    }
  }
}

template <typename T>
void expect_dropped(const Draw& draw) {
  SCOPED_TRACE(std::to_string(draw.rows) + " rows of " + std::to_string(draw.members) + " x " +
               std::to_string(draw.channels));
  CounterRng rng(11, static_cast<std::uint64_t>(draw.rows + draw.channels));
  std::vector<std::uint64_t> rows(static_cast<std::size_t>(draw.rows)),
      members(static_cast<std::size_t>(draw.members));
  for (std::uint64_t& key : rows) key = rng.below(std::numeric_limits<std::uint64_t>::max());
  for (std::uint64_t& key : members) key = rng.below(std::numeric_limits<std::uint64_t>::max());
  auto values = test::random_rows<T>(draw.rows * draw.members * draw.channels, rng);
  if (values.size() > 2) values[2] = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> expected(values.size());
  for (std::int64_t i = 0; i < draw.rows * draw.members; ++i) {
    drop_row(draw, rows[static_cast<std::size_t>(i % draw.rows)],
             members[static_cast<std::size_t>(i / draw.rows)], values.data() + i * draw.channels,
             expected.data() + i * draw.channels);
  }
  const test::GuardedArray<std::uint64_t> keys(rows);
  const test::GuardedArray<T> x(values);
  test::GuardedArray<T> y(values.size());
  test::run_both_ways(y, [&](T* to) {
    const std::int64_t plane = draw.rows * draw.channels;
    launch_drop<T>(draw.whole_rows, draw.rows, {draw.channels, draw.members}, draw.rate,
                   members.data(), 7, keys.data(), {x.data(), plane}, {to, plane}, nullptr);
  });
  test::expect_equal(y, expected, "dropped");
  // Of few rows that are dropped whole, none may be.
  if (values.size() > 100 && draw.rate > 0 && (!draw.whole_rows || draw.rows > 50)) {
    EXPECT_GT(std::ranges::count(expected, T{0}), std::ranges::count(values, T{0}));
  }
}

TEST(DroppedRows, HaveTheMasksOfTheCpu) {
  for (const std::int64_t rows : {0, 1, 5, 70}) {
    for (const std::int64_t channels : {1, 15, 16, 17, 127, 128, 129, 300}) {
      for (const std::int64_t members : {0, 1, 3}) {
        expect_dropped<float>({rows, members, channels, 0.3});
        expect_dropped<double>({rows, members, channels, 0.75});
        expect_dropped<float>({rows, members, channels, 0.5, true});
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(DroppedRows, KeepAllWhereTheRateIsZero) {
  expect_dropped<float>({9, 2, 33, 0});
}

}  // namespace
}  // namespace tpudist
