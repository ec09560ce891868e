#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "models/kernels/row_launches.hpp"
#include "tests/cuda_emulation/guarded_array.hpp"
#include "tests/models/plans/make_csr.hpp"

// Helpers of the tests of kernels.

namespace tpudist::test {

// A Csr in the memory of the emulated device, with rows of more than `length` entries in chunks.
struct DeviceMatrix {
  explicit DeviceMatrix(const Csr& matrix,
                        std::int64_t length = std::numeric_limits<std::int64_t>::max())
      : DeviceMatrix(matrix, split_long_rows(matrix, length)) {}
  DeviceMatrix(const Csr& matrix, const LongRows& split)
      : begin(matrix.begin),
        source(matrix.source),
        weight(matrix.weight),
        length(split.length),
        chunk_begin(split.chunk_begin),
        chunk_row(split.chunk_row),
        row(split.row),
        row_begin(split.begin) {}
  CsrPointers pointers() const {
    return {begin.data(),
            source.data(),
            weight.size() == 0 ? nullptr : weight.data(),
            static_cast<std::int64_t>(begin.size()) - 1,
            {length, chunk_begin.data(), chunk_row.data(), row.data(), row_begin.data(),
             static_cast<std::int64_t>(chunk_row.size()), static_cast<std::int64_t>(row.size())}};
  }
  // The buffer that a launch over the matrix needs for one member.
  template <typename T>
  GuardedArray<T> parts(std::int64_t width) const {
    return GuardedArray<T>(2 * chunk_row.size() * static_cast<std::size_t>(width));
  }
  GuardedArray<std::int32_t> begin;
  GuardedArray<std::int32_t> source;
  GuardedArray<float> weight;
  std::int64_t length;
  GuardedArray<std::int64_t> chunk_begin;
  GuardedArray<std::int32_t> chunk_row, row;
  GuardedArray<std::int64_t> row_begin;
};

// Rows of up to five entries with small whole weights; parallel entries are merged.
inline Csr random_matrix(std::int64_t rows, std::int64_t sources, CounterRng& rng) {
  std::vector<CsrEntry> entries;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::uint64_t e = rng.below(6); e > 0; --e)
      entries.push_back({static_cast<std::int32_t>(i),
                         static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(sources))),
                         static_cast<float>(1 + rng.below(3))});
  }
  return make_csr(rows, entries);
}

// Few different values, so that many sources tie for the maximum.
template <typename T>
std::vector<T> random_rows(std::int64_t size, CounterRng& rng) {
  std::vector<T> values(static_cast<std::size_t>(size));
  for (T& value : values)
    value = rng.below(2) == 0 ? static_cast<T>(rng.below(4)) - 2 : static_cast<T>(rng.normal());
  return values;
}

template <typename T>
bool same(T a, T b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

template <typename T>
void expect_equal(const GuardedArray<T>& got, const std::vector<T>& expected,
                  const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_TRUE(same(got[i], expected[i]))
        << what << " at " << i << ": " << got[i] << " for " << expected[i];
}

// Expects equality up to 1e-12 of the largest number in double, 2e-6 in float32: the order of sums
// or a function may differ.
template <typename T>
void expect_near(const GuardedArray<T>& got, const std::vector<double>& expected,
                 const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double scale = 1;
  for (const double value : expected) scale = std::max(scale, std::abs(value));
  const double tolerance = scale * (sizeof(T) == 8 ? 1e-12 : 2e-6);
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], tolerance) << what << " at " << i;
}

// Runs `launch` into a new array twice, with the threads in either order: both must write the same.
// Elements that no thread writes stay NaN (0xff bytes).
template <typename T, typename Launch>
void run_both_ways(GuardedArray<T>& result, const Launch& launch) {
  GuardedArray<T> again(result.size(), 0);
  std::memset(static_cast<void*>(result.data()), 0xff, result.size() * sizeof(T));
  emulation::order = emulation::Order::backward;
  launch(result.data());
  std::memcpy(static_cast<void*>(again.data()), result.data(), result.size() * sizeof(T));
  std::memset(static_cast<void*>(result.data()), 0xff, result.size() * sizeof(T));
  emulation::order = emulation::Order::forward;
  launch(result.data());
  ASSERT_EQ(std::memcmp(again.data(), result.data(), result.size() * sizeof(T)), 0);
}

}  // namespace tpudist::test
