#include "models/kernels/leaf_sums.hpp"

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

}  // namespace
}  // namespace tpudist
