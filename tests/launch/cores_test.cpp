#include "launch/cores.hpp"

#include <gtest/gtest.h>

namespace tpudist {
namespace {

TEST(Cores, RanksWithoutBindingShareAll) {
  EXPECT_EQ(share_of_cores({"11111111"}, 0), 8);
  EXPECT_EQ(share_of_cores({"11111111", "11111111"}, 1), 4);
  EXPECT_EQ(share_of_cores({"111111", "111111", "111111"}, 2), 2);
}

TEST(Cores, BoundRanksHaveTheirOwn) {
  EXPECT_EQ(share_of_cores({"1100", "0011"}, 1), 2);
  EXPECT_EQ(share_of_cores({"1", "01"}, 0), 1);
}

TEST(Cores, RanksBoundToTwoSocketsShareTheirSocket) {
  EXPECT_EQ(share_of_cores({"11110000", "00001111", "11110000", "00001111"}, 2), 2);
}

TEST(Cores, AtLeastOne) {
  EXPECT_EQ(share_of_cores({"1", "1", "1"}, 1), 1);
}

}  // namespace
}  // namespace tpudist
