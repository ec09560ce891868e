#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <tuple>
#include <vector>

#include "models/kernels/cuda_launch.hpp"
#include "tests/cuda_emulation/guarded_array.hpp"
#include "tests/support/expected_fault.hpp"

// What is wrong with a launch on purpose is seen: otherwise the tests of kernels would prove
// nothing.

namespace tpudist {
namespace {

using test::GuardedArray;

std::multiset<std::tuple<unsigned, unsigned, unsigned, unsigned>> places;

void note_place(int) {
  places.emplace(blockIdx.x, blockIdx.y, threadIdx.x, threadIdx.y);
  EXPECT_EQ(gridDim.x, 3u);
  EXPECT_EQ(blockDim.y, 5u);
}

// Each thread writes four floats, `shift` floats after where it should.
void write_four(float* to, int shift) {
  *reinterpret_cast<float4*>(to + 4 * threadIdx.x + shift) = {1, 2, 3, 4};
}

void read_four(const float* from, float* to, int shift) {
  to[threadIdx.x] = __ldg(reinterpret_cast<const float4*>(from + 4 * threadIdx.x + shift)).x;
}

// Takes what its neighbour may have written already: a race.
void take_neighbour(float* values, int count) {
  const int i = static_cast<int>(threadIdx.x);
  values[i] = values[(i + 1) % count] + 1;
}

TEST(Emulation, RunsEachThreadOnce) {
  for (const auto order : {emulation::Order::forward, emulation::Order::backward}) {
    emulation::order = order;
    places.clear();
    TPUDIST_LAUNCH(note_place, dim3(3, 2), dim3(4, 5), nullptr, 0);
    EXPECT_EQ(places.size(), 120u);
    EXPECT_EQ(std::set(places.begin(), places.end()).size(), 120u);
  }
  emulation::order = emulation::Order::forward;
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(Emulation, RefusesWhatNoDeviceTakes) {
  for (const auto& [grid, block] : std::vector<std::pair<dim3, dim3>>{
           {{1}, {1025}}, {{1}, {32, 64}}, {{1}, {0}}, {{0}, {32}}, {{1, 65536}, {1}}}) {
    places.clear();
    TPUDIST_LAUNCH(note_place, grid, block, nullptr, 0);
    EXPECT_TRUE(places.empty());
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
}

TEST(EmulationDeathTest, EndsAtTheEndOfMemory) {
  GuardedArray<float> array(64), result(16);
  TPUDIST_LAUNCH(write_four, dim3(1), dim3(16), nullptr, array.data(), 0);
  EXPECT_EQ(array[63], 4);
  TPUDIST_EXPECT_FAULT(TPUDIST_LAUNCH(write_four, dim3(1), dim3(17), nullptr, array.data(), 0), "");
  TPUDIST_EXPECT_FAULT(
      TPUDIST_LAUNCH(read_four, dim3(1), dim3(17), nullptr, array.data(), result.data(), 0), "");
  TPUDIST_EXPECT_FAULT(array[64] = 1, "");
  TPUDIST_EXPECT_FAULT(*(array.data() - 4096 / sizeof(float)) = 1, "");
}

TEST(EmulationDeathTest, EndsAtAMisalignedVector) {
  GuardedArray<float> array(64), result(16);
  TPUDIST_LAUNCH(read_four, dim3(1), dim3(4), nullptr, array.data(), result.data(), 4);
  TPUDIST_EXPECT_FAULT(
      TPUDIST_LAUNCH(read_four, dim3(1), dim3(4), nullptr, array.data(), result.data(), 1),
      "misaligned");
  TPUDIST_EXPECT_FAULT(TPUDIST_LAUNCH(write_four, dim3(1), dim3(4), nullptr, array.data(), 2), "");
}

TEST(Emulation, ShowsARaceByTheOrder) {
  std::vector<std::vector<float>> results;
  for (const auto order : {emulation::Order::forward, emulation::Order::backward}) {
    emulation::order = order;
    std::vector<float> values = {0, 10, 20, 30};
    TPUDIST_LAUNCH(take_neighbour, dim3(1), dim3(4), nullptr, values.data(), 4);
    results.push_back(values);
  }
  emulation::order = emulation::Order::forward;
  EXPECT_NE(results[0], results[1]);
}

}  // namespace
}  // namespace tpudist
