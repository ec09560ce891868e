#include "core/file_system.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "tests/support/another_user.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/watched_files.hpp"

namespace tpudist {
namespace {

using test::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
namespace fs = std::filesystem;

// A file system that fails in the operation of number `failing`, except in removals.
struct FaultyFileSystem : test::WatchedFileSystem {
  explicit FaultyFileSystem(int failing)
      : WatchedFileSystem([this, failing](const std::string& name, const auto&) {
          if (name == "remove") return;
          steps.push_back(name);
          if (static_cast<int>(steps.size()) == failing + 1) throw IoError("fault in " + name);
        }) {}

  std::vector<std::string> steps;
};

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(WriteFileAtomically, WritesAndReplaces) {
  const test::TempDir folder;
  write_file_atomically(folder / "file", "old");
  write_file_atomically(folder / "file", "the new one");
  EXPECT_EQ(read_text_file(folder / "file"), "the new one");
  EXPECT_THAT(names_in(folder.path()), ElementsAre("file"));
}

TEST(WriteFileAtomically, TakesBytesAndEmptyContent) {
  const test::TempDir folder;
  const std::string text("a\0b", 3);
  write_file_atomically(folder / "file", std::as_bytes(std::span(text)));
  EXPECT_EQ(read_text_file(folder / "file"), text);
  write_file_atomically(folder / "file", "");
  EXPECT_EQ(read_text_file(folder / "file"), "");
}

TEST(WriteFileAtomically, TakesTheStepsThatMakeItDurable) {
  const test::TempDir folder;
  FaultyFileSystem files(1000);
  write_file_atomically(folder / "file", "text", files);
  EXPECT_THAT(files.steps,
              ElementsAre("create", "write", "write", "sync", "close", "rename", "sync_directory"));
}

TEST(WriteFileAtomically, KeepsTheOldFileWhateverFails) {
  const test::TempDir folder;
  for (int failing = 0; failing < 6; ++failing) {
    write_file_atomically(folder / "file", "old");
    FaultyFileSystem files(failing);
    EXPECT_THROW(write_file_atomically(folder / "file", "the new one", files), IoError) << failing;
    EXPECT_EQ(files.steps.size(), failing + 1u);
    EXPECT_EQ(read_text_file(folder / "file"), "old") << files.steps.back();
    EXPECT_THAT(names_in(folder.path()), ElementsAre("file")) << files.steps.back();
  }
}

TEST(WriteFileAtomically, HasTheWholeNewFileWhenOnlyTheFolderFails) {
  const test::TempDir folder;
  write_file_atomically(folder / "file", "old");
  FaultyFileSystem files(6);
  EXPECT_THROW(write_file_atomically(folder / "file", "the new one", files), IoError);
  EXPECT_EQ(files.steps.back(), "sync_directory");
  EXPECT_EQ(read_text_file(folder / "file"), "the new one");
  EXPECT_THAT(names_in(folder.path()), ElementsAre("file"));
}

TEST(WriteFileAtomically, WritesIntoTheCurrentFolder) {
  const test::TempDir folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  write_file_atomically("file", "text");
  std::filesystem::current_path(before);
  EXPECT_EQ(read_text_file(folder / "file"), "text");
}

TEST(WriteFileAtomically, SaysWhatIsWrong) {
  const test::TempDir folder;
  EXPECT_THAT(message_of<IoError>([&] { write_file_atomically(folder / "absent/file", "text"); }),
              AllOf(HasSubstr("absent/file"), HasSubstr("No such file or directory")));
  std::filesystem::create_directory(folder / "folder");
  EXPECT_THROW(write_file_atomically(folder / "folder", "text"), IoError);
  EXPECT_THROW(write_file_atomically(folder / "folder/", "text"), IoError);
  EXPECT_THROW(write_file_atomically("", "text"), IoError);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("folder"));
}

TEST(PosixFileSystem, SaysWhatCannotBeRenamedToWhat) {
  const test::TempDir folder;
  EXPECT_THAT(message_of<IoError>([&] { posix_file_system().rename(folder / "a", folder / "b"); }),
              HasSubstr("cannot rename " + (folder / "a").string() + " to " +
                        (folder / "b").string() + ": No such file"));
}

TEST(WriteFileAtomically, TakesTheLongestName) {
  const test::TempDir folder;
  const std::string name(255, 'x');
  write_file_atomically(folder / name, "text");
  EXPECT_THAT(names_in(folder.path()), ElementsAre(name));
}

TEST(WriteFileAtomically, NoticesAFullDisk) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  const auto file = posix_file_system().create("/dev/full");
  EXPECT_THROW(file->write(std::as_bytes(std::span("text"))), IoError);
}

TEST(TemporaryFile, IsBesideTheFinalName) {
  const test::TempDir folder;
  const TemporaryFile one(folder / "file"), other(folder / "file");
  EXPECT_EQ(one.path().parent_path(), folder.path());
  EXPECT_EQ(one.path().extension(), ".tmp");
  EXPECT_THAT(one.path().filename().string(), HasSubstr("file." + std::to_string(getpid()) + "-"));
  EXPECT_NE(one.path(), other.path());
}

TEST(TemporaryFile, CommitsWhatAnotherLibraryWrote) {
  const test::TempDir folder;
  {
    TemporaryFile temporary(folder / "file");
    std::ofstream(temporary.path()) << "text";
    temporary.commit();
    temporary.commit();  // once more does nothing
  }
  EXPECT_EQ(read_text_file(folder / "file"), "text");
  EXPECT_THAT(names_in(folder.path()), ElementsAre("file"));
}

TEST(TemporaryFile, LeavesNothingWithoutCommit) {
  const test::TempDir folder;
  {
    TemporaryFile temporary(folder / "file");
    std::ofstream(temporary.path()) << "text";
    TemporaryFile never_written(folder / "other");
  }
  EXPECT_THAT(names_in(folder.path()), ElementsAre());
}

TEST(TemporaryFile, KeepsTheOldFileWhateverFails) {
  const test::TempDir folder;
  for (int failing = 0; failing < 2; ++failing) {
    write_file_atomically(folder / "file", "old");
    FaultyFileSystem files(failing);
    {
      TemporaryFile temporary(folder / "file", files);
      std::ofstream(temporary.path()) << "the new one";
      EXPECT_THROW(temporary.commit(), IoError);
    }
    EXPECT_EQ(read_text_file(folder / "file"), "old");
    EXPECT_THAT(names_in(folder.path()), ElementsAre("file"));
  }
}

TEST(ReadTextFile, ReadsLargeAndEmptyFiles) {
  const test::TempDir folder;
  const std::string large(5'000'000, 'x');
  write_file_atomically(folder / "large", large);
  EXPECT_EQ(read_text_file(folder / "large"), large);
  EXPECT_EQ(read_text_file("/dev/null"), "");
}

TEST(ReadTextFile, KeepsTheLimit) {
  const test::TempDir folder;
  write_file_atomically(folder / "file", "12345");
  EXPECT_EQ(read_text_file(folder / "file", 5), "12345");
  EXPECT_THROW(read_text_file(folder / "file", 4), IoError);
  EXPECT_THROW(read_text_file("/dev/zero", 1000), IoError);
}

TEST(ReadTextFile, FailsOnWhatIsNoFile) {
  const test::TempDir folder;
  EXPECT_THROW(read_text_file(folder / "absent"), IoError);
  EXPECT_THROW(read_text_file(folder.path()), IoError);
}

TEST(AppendToFile, MakesTheFileAndAddsToIt) {
  const test::TempDir folder;
  append_to_file(folder / "file", "one\n");
  append_to_file(folder / "file", "two\n");
  EXPECT_EQ(read_text_file(folder / "file"), "one\ntwo\n");
}

TEST(AppendToFile, SaysWhyItCannotWrite) {
  const test::TempDir folder;
  std::filesystem::create_directory(folder / "file");
  EXPECT_THAT(message_of<IoError>([&] { append_to_file(folder / "file", "text"); }),
              MatchesRegex("cannot write .*/file: Is a directory"));
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  EXPECT_THAT(message_of<IoError>([] { append_to_file("/dev/full", "text"); }),
              HasSubstr("cannot write /dev/full: No space left on device"));
}

// A limit on the size of files lets the system write a part, and then no more.
TEST(AppendToFile, TakesBackWhatFitsInPart) {
  const test::TempDir folder;
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
