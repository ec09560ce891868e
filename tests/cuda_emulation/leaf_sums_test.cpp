#include "models/kernels/flat_launches.hpp"

#include "tests/cuda_emulation/kernel_case.hpp"

namespace tpudist {
namespace {

// Three members: (0 + 1) + 2, none, and 3 alone. Elements fill a block, or not.
TEST(LeafSums, AddsInTheOrderOfThePlan) {
  for (const std::int64_t length : {1, 255, 256, 1000}) {
    CounterRng rng(5, static_cast<std::uint64_t>(length));
    std::vector<float> rows(static_cast<std::size_t>(4 * length));
    for (float& value : rows) value = static_cast<float>(rng.normal() * rng.uniform(0, 1e6));
    const test::GuardedArray<std::int32_t> plan(
        std::vector<std::int32_t>{0, 2, 2, 2, 1, -1, 3, 1, 2, 1, 0});
    std::vector<float> expected;
    for (std::int64_t i = 0; i < length; ++i)
      expected.push_back((rows[length + i] + rows[2 * length + i]) + rows[i]);
    expected.resize(static_cast<std::size_t>(2 * length));
    expected.insert(expected.end(), rows.end() - length, rows.end());
    test::GuardedArray<float> sums(static_cast<std::size_t>(3 * length));
    test::run_both_ways(sums, [&](float* out) {
      test::GuardedArray<float> leaves(rows);
      launch_leaf_sums(3, length, plan.data(), leaves.data(), out, nullptr);
    });
    test::expect_equal(sums, expected, "sums of " + std::to_string(length));
  }
}

// Rows 2 and 0 of three for four ranks. Of 40 elements the third has half a slice and the last one
// none.
TEST(LeafSums, CutsRowsIntoSlicesAndBack) {
  for (const std::int64_t length : {40, 700}) {
    const std::int64_t slice = length == 40 ? 16 : 176;
    const test::GuardedArray<std::int32_t> row_of(std::vector<std::int32_t>{2, 0});
    std::vector<float> rows(static_cast<std::size_t>(3 * length)), expected;
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
    for (int rank = 0; rank < 4; ++rank) {
      for (const std::int64_t row : {2, 0}) {
        for (std::int64_t i = rank * slice; i < (rank + 1) * slice; ++i)
          expected.push_back(i < length ? static_cast<float>(row * length + i) : 0.0f);
      }
    }
    const test::GuardedArray<float> from(rows);
    test::GuardedArray<float> slices(static_cast<std::size_t>(2 * 4 * slice)),
        back(static_cast<std::size_t>(2 * length));
    test::run_both_ways(slices, [&](float* out) {
      launch_rows_to_slices(2, length, 4, slice, row_of.data(), from.data(), out, nullptr);
    });
    test::expect_equal(slices, expected, "slices of " + std::to_string(length));
    test::run_both_ways(back, [&](float* out) {
      launch_slices_to_rows(2, length, slice, slices.data(), out, nullptr);
    });
    std::vector<float> both(rows.end() - length, rows.end());
    both.insert(both.end(), rows.begin(), rows.begin() + length);
    test::expect_equal(back, both, "rows of " + std::to_string(length));
  }
}

TEST(LeafSums, PutsAValueIntoEachRow) {
  const test::GuardedArray<std::int32_t> row_of(std::vector<std::int32_t>{2, 0});
  const test::GuardedArray<float> values(std::vector<float>{7, 8});
  test::GuardedArray<float> rows(std::vector<float>(12, 1.0f));
  launch_put_values(2, row_of.data(), values.data(), 4, 3, rows.data(), nullptr);
  test::expect_equal(rows, {1, 1, 1, 8, 1, 1, 1, 1, 1, 1, 1, 7}, "rows");
}

}  // namespace
}  // namespace tpudist
