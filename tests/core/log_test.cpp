#include "core/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What one message of each level leaves on standard error.
std::string logged(int rank, int ranks, const char* level) {
  if (level) {
    setenv("TPUDIST_LOG", level, 1);
  } else {
    unsetenv("TPUDIST_LOG");
  }
  ::testing::internal::CaptureStderr();
  set_up_logging(rank, ranks);
  spdlog::debug("a detail");
  spdlog::info("a fact");
  spdlog::warn("a worry");
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, Rank0TellsFacts) {
  const std::string text = logged(0, 4, nullptr);
  EXPECT_THAT(text, HasSubstr("info a fact"));
  EXPECT_THAT(text, Not(HasSubstr("a detail")));
  EXPECT_THAT(text, Not(HasSubstr("rank")));
}

TEST(Log, OtherRanksOnlyWarn) {
  const std::string text = logged(3, 4, nullptr);
  EXPECT_THAT(text, HasSubstr("[rank 3] a worry"));
  EXPECT_THAT(text, Not(HasSubstr("a fact")));
}

TEST(Log, TheEnvironmentWins) {
  EXPECT_THAT(logged(3, 4, "debug"), HasSubstr("[rank 3] a detail"));
  EXPECT_EQ(logged(0, 4, "error"), "");
}

TEST(Log, AnUnknownLevelIsReported) {
  const std::string text = logged(0, 1, "loud");
  EXPECT_THAT(text, HasSubstr("TPUDIST_LOG=loud"));
  EXPECT_THAT(text, HasSubstr("a fact"));
}

}  // namespace
}  // namespace tpudist
