#include "core/append_file.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "core/file_system.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

using test::TempDir;
using ::testing::HasSubstr;

TEST(AppendToFile, MakesTheFileAndAddsToIt) {
  const TempDir folder;
  append_to_file(folder / "file", "one\n");
  append_to_file(folder / "file", "two\n");
  EXPECT_EQ(read_text_file(folder / "file"), "one\ntwo\n");
}

TEST(AppendToFile, TellsAFullDiskFromOtherFaults) {
  const TempDir folder;
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  EXPECT_THROW(append_to_file("/dev/full", "text"), DiskFullError);
  std::filesystem::create_directory(folder / "file");
  try {
    append_to_file(folder / "file", "text");
    ADD_FAILURE() << "no error";
  } catch (const DiskFullError& error) {
    ADD_FAILURE() << error.what();
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("file: cannot write: Is a directory"));
  }
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
