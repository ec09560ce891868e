#include "core/log.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/progress.hpp"

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

TEST(Log, AMessageIsOneLineOfPrintableText) {
  unsetenv("TPUDIST_LOG");
  ::testing::internal::CaptureStderr();
  set_up_logging(0, 1);
  spdlog::warn("{}: odd", "a\x1b[31m\n12:00:00 error forged\xe2\x80\xae");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::EndsWith("warning a?[31m; 12:00:00 error forged?: odd\n"));
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

// Each in a process of its own, because it holds for the rest of the process.
TEST(LogDeathTest, QuietAndVerboseWinOverTheEnvironment) {
  const auto exit_saying = [](Verbosity verbosity, const char* level) {
    setenv("TPUDIST_LOG", level, 1);
    set_verbosity(verbosity);
    set_up_logging(0, 1);
    spdlog::debug("a detail");
    spdlog::info("a fact");
    spdlog::warn("a worry");
    std::exit(0);
  };
  EXPECT_EXIT(exit_saying(Verbosity::quiet, "debug"), ::testing::ExitedWithCode(0),
              "^..:..:.. warning a worry\n$");
  EXPECT_EXIT(exit_saying(Verbosity::verbose, "error"), ::testing::ExitedWithCode(0), "a detail");
}

// Keeps the lines that it is given.
class Lines : public NoProgress {
 public:
  void line(std::string_view text) override { lines.emplace_back(text); }
  std::vector<std::string> lines;
};

TEST(LogAboveProgress, TakesTheLinesWhileItLives) {
  unsetenv("TPUDIST_LOG");
  ::testing::internal::CaptureStderr();
  set_up_logging(3, 4);
  Lines progress;
  {
    const LogAboveProgress above(progress);
    spdlog::warn("during");
    spdlog::info("not worth a line");
  }
  spdlog::warn("after");
  const std::string text = ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(progress.lines.size(), 1u);
  EXPECT_THAT(progress.lines[0], ::testing::MatchesRegex("..:..:.. warning \\[rank 3\\] during"));
  EXPECT_THAT(text, HasSubstr("warning [rank 3] after"));
  EXPECT_THAT(text, Not(HasSubstr("during")));
}

}  // namespace
}  // namespace tpudist
