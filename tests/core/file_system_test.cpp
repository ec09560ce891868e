#include "core/file_system.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/watched_files.hpp"

namespace tpudist {
namespace {

using test::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace tpudist
