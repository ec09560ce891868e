#include "core/file_system.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using test::TempDir;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(AppendToFile, MakesTheFileAndAddsToIt) {
  const TempDir folder;
  append_to_file(folder / "file", "one\n");
  append_to_file(folder / "file", "two\n");
  EXPECT_EQ(read_text_file(folder / "file"), "one\ntwo\n");
}

TEST(AppendToFile, SaysWhyItCannotWrite) {
  const TempDir folder;
  std::filesystem::create_directory(folder / "file");
  EXPECT_THAT(test::message_of<IoError>([&] { append_to_file(folder / "file", "text"); }),
              MatchesRegex("cannot write .*/file: Is a directory"));
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  EXPECT_THAT(test::message_of<IoError>([] { append_to_file("/dev/full", "text"); }),
              HasSubstr("cannot write /dev/full: No space left on device"));
}

// A limit on the size of files lets the system write a part, and then no more.
TEST(AppendToFile, TakesBackWhatFitsInPart) {
  const TempDir folder;
  append_to_file(folder / "file", "whole line\n");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit narrow{15, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &narrow), 0);
  EXPECT_THROW(append_to_file(folder / "file", "another line\n"), IoError);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_text_file(folder / "file"), "whole line\n");
}

}  // namespace
}  // namespace tpudist
