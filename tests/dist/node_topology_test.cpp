#include "dist/collectives/node_topology.hpp"

#include <gmock/gmock.h>

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

TEST(ShareDevices, GivesNothingWhereThereIsNothing) {
  EXPECT_THAT(share_devices(Visible{{}, {}}), ElementsAre(-1, -1));
  EXPECT_THAT(share_devices({}), IsEmpty());
}

}  // namespace
}  // namespace tpudist
