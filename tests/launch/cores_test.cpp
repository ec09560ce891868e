#include "launch/program/cores.hpp"

#include <gmock/gmock.h>

namespace tpudist {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

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

TEST(Cores, AQuotaCountsForAllRanks) {
  EXPECT_EQ(share_of_cores({"11111111"}, 0, 3.5), 3);
  EXPECT_EQ(share_of_cores({"11111111", "11111111"}, 1, 4), 2);
  EXPECT_EQ(share_of_cores({"11"}, 0, 0.5), 1);
  EXPECT_EQ(share_of_cores({"11"}, 0, 16), 2);
}

TEST(CoreWarning, TellsOfAQuota) {
  EXPECT_EQ(core_warning({"11"}, 0, 2, 0, 2), "");
  EXPECT_THAT(core_warning({"11"}, 0, 1, 0, 0.5),
              AllOf(HasSubstr("1 rank with 1 thread each on a CPU quota of 0.5 (control group): "),
                    EndsWith(": raise it (docker --cpus, cpu.max)")));
  EXPECT_THAT(core_warning({"1111", "1111"}, 0, 2, 0, 3),
              AllOf(HasSubstr("quota of 3 "), HasSubstr(", or start fewer (dist.threads)")));
}

TEST(CoreWarning, NamesWhatSlowsRanksDown) {
  EXPECT_EQ(core_warning({"11", "11"}, 0, 1, 0), "");
  EXPECT_EQ(core_warning({"1", "01"}, 0, 1, 2), "");
  EXPECT_THAT(core_warning({"1"}, 0, 4, 8),
              HasSubstr("4 threads on 1 core: start with mpirun --bind-to"));
  EXPECT_THAT(core_warning({"11"}, 0, 4, 0), HasSubstr("4 threads on 2 cores: ask for fewer"));
  EXPECT_THAT(core_warning({"1", "01"}, 1, 1, 64), HasSubstr("bound 2 ranks to 2 cores of 64: "));
  EXPECT_THAT(crowd_note({"11", "11", "11"}), HasSubstr("3 ranks share 2 cores "));
  EXPECT_EQ(crowd_note({"11", "11"}), "");
}

}  // namespace
}  // namespace tpudist
