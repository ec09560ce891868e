#include "launch/program/job.hpp"

#include <gtest/gtest.h>

namespace tpudist {
namespace {

RankError own(int rank, const std::string& message) {
  return {.rank = rank, .exit_code = 2, .heard = false, .message = message};
}

RankError heard(int rank, const std::string& message) {
  return {.rank = rank, .exit_code = 2, .heard = true, .message = message};
}

TEST(ErrorLines, TellAnErrorOfAllRanksOnceAndWithoutRanks) {
  const std::vector<RankError> errors{own(0, "no data"), own(1, "no data")};
  EXPECT_EQ(error_lines(errors, 2), "tpudist: error: no data\n");
  EXPECT_EQ(error_lines(errors, 3), "tpudist: error (ranks 0, 1): no data\n");
}

TEST(ErrorLines, TellDifferentErrorsWithTheirRanks) {
  const std::vector<RankError> errors{own(0, "no data"), own(2, "disk full"), own(3, "no data")};
  EXPECT_EQ(error_lines(errors, 4),
            "tpudist: error (ranks 0, 3): no data\ntpudist: error (rank 2): disk full\n");
}

TEST(ErrorLines, LeaveOutWhatRanksOnlyHeardOf) {
  const std::vector<RankError> errors{heard(0, "rank 1: disk full"), own(1, "disk full"),
                                      heard(2, "rank 1: disk full")};
  EXPECT_EQ(error_lines(errors, 3), "tpudist: error (rank 1): disk full\n");
  // Unless the rank that failed has not told of it in time.
  const std::vector<RankError> only_heard{heard(2, "rank 1: disk full")};
  EXPECT_EQ(error_lines(only_heard, 3), "tpudist: error (rank 2): rank 1: disk full\n");
}

}  // namespace
}  // namespace tpudist
