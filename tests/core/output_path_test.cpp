#include "core/output_path.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "tests/support/another_user.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string refusal(const fs::path& path) {
  return test::message_of<Error>([&] { check_output(path); });
}

TEST(WriteFileAtomically, KeepsALinkAndReplacesItsTarget) {
  const test::TempDir folder;
  fs::create_directory(folder / "far");
  write_file_atomically(folder / "far/file", "old");
  fs::create_symlink("far/file", folder / "link");
  fs::create_symlink("link", folder / "second");
  write_file_atomically(folder / "second", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "second"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_FALSE(fs::is_symlink(folder / "far/file"));
  EXPECT_EQ(read_text_file(folder / "far/file"), "new");
}

TEST(WriteFileAtomically, MakesTheTargetOfADanglingLink) {
  const test::TempDir folder;
  fs::create_symlink(folder / "target", folder / "link");
  write_file_atomically(folder / "link", "text");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_text_file(folder / "target"), "text");
}

TEST(WriteFileAtomically, WritesIntoAFifo) {
  const test::TempDir folder;
  const fs::path fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = read_text_file(fifo); });
  write_file_atomically(fifo, "text");
  reader.join();
  EXPECT_EQ(read, "text");
  EXPECT_TRUE(fs::is_fifo(fifo));
}

// A link to a device, so that a fault cannot harm the machine's own.
TEST(WriteFileAtomically, WritesIntoADevice) {
  const test::TempDir folder;
  fs::create_symlink("/dev/null", folder / "null");
  write_file_atomically(folder / "null", "text");
  EXPECT_TRUE(fs::is_symlink(folder / "null"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  fs::create_symlink("/dev/full", folder / "full");
  EXPECT_THROW(write_file_atomically(folder / "full", "text"), IoError);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(WriteFileAtomically, WritesToAnOpenDescriptorAtItsPlace) {
  const test::TempDir folder;
  const int file = ::open((folder / "file").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(::write(file, "a\n", 2), 2);
  const std::string name = "/dev/fd/" + std::to_string(file);
  EXPECT_EQ(refusal(name), "");
  write_file_atomically(name, "b\n");
  ASSERT_EQ(::write(file, "c\n", 2), 2);
  ::close(file);
  EXPECT_EQ(read_text_file(folder / "file"), "a\nb\nc\n");
  EXPECT_THAT(refusal(name), HasSubstr("Bad file descriptor"));
}

TEST(TemporaryFile, LiesBesideTheTargetOfALinkAndRefusesADevice) {
  const test::TempDir folder;
  fs::create_directory(folder / "far");
  fs::create_symlink(folder / "far/file", folder / "link");
  {
    TemporaryFile temporary(folder / "link");
    EXPECT_EQ(temporary.path().parent_path(), folder / "far");
    std::ofstream(temporary.path()) << "text";
    temporary.commit();
  }
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_text_file(folder / "far/file"), "text");
  EXPECT_THROW(TemporaryFile("/dev/null"), IoError);
}

TEST(CheckOutput, TakesWhatCanBeWrittenAndMakesNothing) {
  const test::TempDir folder;
  write_file_atomically(folder / "old", "text");
  fs::create_symlink(folder / "absent", folder / "link");
  for (const fs::path& path :
       {folder / "old", folder / "new", folder / "link", fs::path("/dev/null"), fs::path("name")}) {
    EXPECT_EQ(refusal(path), "") << path;
  }
  EXPECT_FALSE(fs::exists(folder / "new"));
  EXPECT_FALSE(fs::exists(folder / "absent"));
}

TEST(CheckOutput, SaysWhatIsWrong) {
  const test::TempDir folder;
  write_file_atomically(folder / "file", "text");
  fs::create_symlink("loop", folder / "loop");
  fs::create_symlink("absent/x", folder / "link");
  EXPECT_THAT(refusal(folder / "none/x"),
              HasSubstr("there is no folder " + (folder / "none").string()));
  EXPECT_THAT(refusal(folder / "file/x"), HasSubstr("there is no folder"));
  EXPECT_THAT(refusal(folder / "link"), HasSubstr("there is no folder"));
  EXPECT_THAT(refusal(folder / "loop"), HasSubstr("loop: Too many levels of symbolic links"));
  EXPECT_THAT(refusal(folder.path()), HasSubstr("Is a directory"));
  EXPECT_THAT(refusal(folder / "x/"), HasSubstr("not the name of a file"));
  EXPECT_THAT(refusal(""), HasSubstr("not the name of a file"));
}

TEST(CheckOutput, RefusesWhatIsProtected) {
  const test::TempDir folder;
  write_file_atomically(folder / "file", "text");
  fs::permissions(folder / "file", fs::perms{0444});
  fs::permissions(folder.path(), fs::perms{0777});
  {
    const test::AnotherUser user;
    EXPECT_THAT(refusal(folder / "file"), HasSubstr("Permission denied"));
    EXPECT_EQ(refusal(folder / "new"), "");
  }
  fs::permissions(folder.path(), fs::perms{0555});
  {
    const test::AnotherUser user;
    EXPECT_THAT(refusal(folder / "new"), HasSubstr("Permission denied"));
  }
  fs::permissions(folder.path(), fs::perms{0755});
}

}  // namespace
}  // namespace tpudist
