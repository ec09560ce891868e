// Every layer, and one network composed of several, on a real GPU against the CPU. Products and sums
// over long rows are added in another order, so that numbers agree up to rounding; the bits of two
// runs are the same.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "core/error.hpp"
#include "tests/models/layers/device_layer_case.hpp"

namespace tpudist {
namespace {

using namespace test;
using ::testing::HasSubstr;

class LayersOnGpu : public EveryLayer {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "needs a GPU";
    if (!runs_on_gpus()) GTEST_SKIP() << "needs a build with nvcc";
  }
};

TEST_P(LayersOnGpu, EqualTheCpuInDouble) {
  expect_equal_in_double(GetParam(), make_device_context(0), 1e-10);
}

TEST_P(LayersOnGpu, TrainInFloatAsOnTheCpu) {
  expect_trains_alike(GetParam(), make_device_context(0), 1e-4);
}

TEST_P(LayersOnGpu, GiveTheSameBitsAgain) {
  const DeviceCase made(GetParam(), 0);
  const auto executor =
      make_composed_executor(made.network.network().config(), made.network.network().schema(),
                             false, made.network.pool(), make_device_context(0));
  const UnitInput input = made.input(true);
  const FloatCall first(*executor, made, input, false, true),
      second(*executor, made, input, false, true);
  EXPECT_EQ(first.scores.delta, second.scores.delta);
  EXPECT_EQ(first.gradients, second.gradients);
}

TEST_P(LayersOnGpu, ComputeAMemberAloneAsAmongOthers) {
  expect_members_apart(GetParam(), make_device_context(0));
}

INSTANTIATE_TEST_SUITE_P(Spellings, LayersOnGpu, ::testing::ValuesIn(layer_spellings()), name_of);

INSTANTIATE_TEST_SUITE_P(Networks, LayersOnGpu, ::testing::Values(kFirstPlace), name_of);

TEST(PlaceOnGpu, NeedsTheKernels) {
  if (runs_on_gpus()) GTEST_SKIP() << "needs a build without nvcc";
  EXPECT_THROW(make_device_context(0), ConfigError);
}

TEST(PlaceOnGpu, NeedsComputeCapability80ForTf32AndBf16) {
  EXPECT_NO_THROW(require_precision(Precision::fp32, 7, 5));
  for (const Precision precision : {Precision::tf32, Precision::bf16}) {
    try {
      require_precision(precision, 7, 5);
      ADD_FAILURE() << "no error";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("precision: {}", precision_name(precision))));
      EXPECT_THAT(error.what(), HasSubstr("7.5"));
    }
    EXPECT_NO_THROW(require_precision(precision, 8, 0));
    EXPECT_NO_THROW(require_precision(precision, 10, 0));
  }
}

// Attention of other threads multiplies in float32 meanwhile.
TEST(PlaceOnGpu, AProductInTf32LeavesOtherThreadsTheirPrecision) {
  if (!at::hasCUDA() || !runs_on_gpus()) GTEST_SKIP() << "needs a GPU and a build with nvcc";
  const auto backend = make_device_context(0, Precision::tf32).make_backend(DeviceArrays(), Precision::tf32);
  const at::Tensor x = at::randn({1, 4096, 64}, at::TensorOptions(at::kCUDA)),
                   weight = at::randn({1, 64, 64}, x.options());
  std::atomic<bool> done = false;
  std::thread products([&] {
    for (int i = 0; i < 1000; ++i) backend->linear_gradient(x, weight, x, true, false);
    done = true;
  });
  int switched = 0;
  while (!done) switched += at::globalContext().allowTF32CuBLAS();
  products.join();
  EXPECT_EQ(switched, 0);
}

TEST(PlaceOnGpu, TurnsTf32Off) {
  at::globalContext().setAllowTF32CuBLAS(true);  // as TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 does
  setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  hold_to_fp32();
  EXPECT_FALSE(at::globalContext().allowTF32CuBLAS());
  EXPECT_THROW(hold_to_fp32(Precision::tf32), ConfigError);  // cuBLAS would not round
  setenv("NVIDIA_TF32_OVERRIDE", "1", 1);
  EXPECT_THROW(hold_to_fp32(), ConfigError);
  unsetenv("NVIDIA_TF32_OVERRIDE");
  EXPECT_NO_THROW(hold_to_fp32());
  EXPECT_NO_THROW(hold_to_fp32(Precision::tf32));
  EXPECT_FALSE(at::globalContext().allowTF32CuBLAS());
}

TEST(PlaceOnGpu, IsTheCpuWithoutADevice) {
  EXPECT_FALSE(make_device_context(-1).is_device());
}

}  // namespace
}  // namespace tpudist
