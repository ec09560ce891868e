// Every layer on the emulated device of tests/cuda_emulation, where the kernels and ATen's
// operations run on the CPU.

#include "models/device/device_backend.hpp"
#include "tests/models/layers/device_layer_case.hpp"

namespace tpudist {
namespace {

using namespace test;

const DeviceContext kEmulated{at::kCPU, make_device_backend};

class DeviceLayers : public EveryLayer {};

TEST_P(DeviceLayers, EqualTheCpuInDouble) {
  expect_equal_in_double(GetParam(), kEmulated, 1e-12);
}

TEST_P(DeviceLayers, TrainInFloatAsOnTheCpu) {
  expect_trains_alike(GetParam(), kEmulated, 1e-5);
}

TEST_P(DeviceLayers, ComputeAMemberAloneAsAmongOthers) {
  // On CPUs LibTorch takes oneDNN for gelu where a tensor is contiguous: only with one member.
  at::globalContext().setUserEnabledMkldnn(false);
  expect_members_apart(GetParam(), kEmulated);
}

INSTANTIATE_TEST_SUITE_P(Spellings, DeviceLayers, ::testing::ValuesIn(layer_spellings()), name_of);
INSTANTIATE_TEST_SUITE_P(Networks, DeviceLayers, ::testing::Values(kFirstPlace), name_of);

}  // namespace
}  // namespace tpudist
