#include "dist/collectives/node_topology.hpp"

#include <gmock/gmock.h>

#include "dist/collectives/device_memory.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Visible = std::vector<std::vector<std::string>>;

TEST(ShareDevices, GivesTheLocalRanksDeviceWhereAllSeeAll) {
  const std::vector<std::string> all = {"a", "b", "c", "d"};
  EXPECT_THAT(share_devices(Visible{all, all, all}), ElementsAre(0, 1, 2));
}

TEST(ShareDevices, GivesTheOnlyDeviceThatTheBatchSystemShows) {
  EXPECT_THAT(share_devices(Visible{{"a"}, {"b"}, {"c"}}), ElementsAre(0, 0, 0));
}

TEST(ShareDevices, NeverGivesADeviceTwice) {
  EXPECT_THAT(share_devices(Visible{{"a", "b"}, {"b", "a"}, {"a", "b"}}), ElementsAre(0, 0, -1));
  EXPECT_THAT(share_devices(Visible{{"a"}, {"a"}}), ElementsAre(0, -1));
}

TEST(ShareDevices, LeavesNoRankWithoutADeviceWhereThereIsAWay) {
  EXPECT_THAT(share_devices(Visible{{"a", "b"}, {"a"}}), ElementsAre(1, 0));
  // The third takes the second's, which takes the first's.
  EXPECT_THAT(share_devices(Visible{{"a", "c"}, {"b", "a"}, {"b"}}), ElementsAre(1, 1, 0));
  EXPECT_THAT(share_devices(Visible{{"a", "b"}, {"a"}, {"b"}}), ElementsAre(1, 0, -1));
}

TEST(ShareDevices, GivesNothingWhereThereIsNothing) {
  EXPECT_THAT(share_devices(Visible{{}, {}}), ElementsAre(-1, -1));
  EXPECT_THAT(share_devices({}), IsEmpty());
}

const Device kTuring{"a", "Tesla T4", 7, 5}, kVolta{"b", "Tesla V100", 7, 0},
    kHopper{"c", "NVIDIA H100", 9, 0};

TEST(Devices, NeedComputeCapability75) {
  EXPECT_TRUE(is_usable(kTuring));
  EXPECT_TRUE(is_usable(kHopper));
  EXPECT_FALSE(is_usable(kVolta));
  EXPECT_EQ(device_kind(kTuring), "Tesla T4, compute capability 7.5");
}

TEST(Devices, TellWhyThereAreNone) {
  EXPECT_EQ(device_problem(13000, 0, "insufficient"), "no NVIDIA driver");
  EXPECT_EQ(device_problem(13010, 12080, "insufficient"),
            "the NVIDIA driver is for CUDA 12.8, and this program needs one for CUDA 13.1");
  EXPECT_EQ(device_problem(13010, 13000, "no CUDA-capable device is detected"),
            "no CUDA-capable device is detected");
}

TEST(Devices, TellWhyARankHasNone) {
  EXPECT_EQ(why_no_device({{}, "no NVIDIA driver"}, 2), "no NVIDIA driver");
  EXPECT_EQ(why_no_device({{kVolta}, ""}, 1),
            "compute capability 7.5 is needed, but there is Tesla V100, compute capability 7.0");
  EXPECT_EQ(why_no_device({{kVolta, kTuring}, ""}, 2),
            "fewer GPUs than ranks: 2 ranks, one of which sees 1 GPU and has none left");
  EXPECT_EQ(why_no_device({}, 1),
            "fewer GPUs than ranks: 1 rank, one of which sees 0 GPUs and has none left");
}

}  // namespace
}  // namespace tpudist
