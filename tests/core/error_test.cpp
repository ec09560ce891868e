#include "core/error.hpp"

#include <gtest/gtest.h>

#include "core/descriptor.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

TEST(Error, KindsAreExitCodes) {
  EXPECT_EQ(ConfigError("x").exit_code(), 2);
  EXPECT_EQ(DataError("x").exit_code(), 3);
  EXPECT_EQ(IoError("x").exit_code(), 1);
  EXPECT_EQ(DistError("x").exit_code(), 1);
  EXPECT_EQ(Error(ErrorKind::stopped, "x").exit_code(), 85);
}

TEST(Error, IsOneLineWhateverNamesFilesAndDataHave) {
  EXPECT_STREQ(DataError("a\nb\r\x1b[2J\x7f \xc3\xa4").what(), "a?b??[2J? \xc3\xa4");
  EXPECT_STREQ(IoError("cannot read a\nb\xff").what(), "cannot read a?b?");
  EXPECT_STREQ(ConfigError("a\x1b[1m\xe2\x80\xae").what(), "a?[1m?");
  EXPECT_STREQ(ConfigError("a:1: b\na:2: c").what(), "a:1: b\na:2: c");
}

TEST(CheckPosix, PassesResultsOn) {
  EXPECT_EQ(check_posix(7, "open", "file"), 7);
}

TEST(CheckPosix, SaysWhatWhereAndWhy) {
  errno = ENOSPC;
  EXPECT_EQ(test::message_of<IoError>([] { check_posix(-1, "write", "/some/file"); }),
            "cannot write /some/file: No space left on device");
}

}  // namespace
}  // namespace tpudist
