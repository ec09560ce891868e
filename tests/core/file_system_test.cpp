#include "core/file_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Passes everything on to the real file system, and fails the operation of number `failing`.
class FaultyFileSystem : public FileSystem {
 public:
  explicit FaultyFileSystem(int failing) : failing_(failing) {}

  std::unique_ptr<WritableFile> create(const std::filesystem::path& path) override {
    step("create");
    return std::make_unique<File>(*this, posix_file_system().create(path));
  }
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    step("rename");
    posix_file_system().rename(from, to);
  }
  void remove(const std::filesystem::path& path) override { posix_file_system().remove(path); }
  void sync_file(const std::filesystem::path& path) override {
    step("sync_file");
    posix_file_system().sync_file(path);
  }
  void sync_directory(const std::filesystem::path& path) override {
    step("sync_directory");
    posix_file_system().sync_directory(path);
  }

  const std::vector<std::string>& steps() const { return steps_; }
  bool has_failed() const { return failing_ < static_cast<int>(steps_.size()); }

 private:
  class File : public WritableFile {
   public:
    File(FaultyFileSystem& files, std::unique_ptr<WritableFile> file)
        : files_(files), file_(std::move(file)) {}
    void write(std::span<const std::byte> bytes) override {
      file_->write(bytes.first(bytes.size() / 2));  // a disk that gets full
      files_.step("write");
      file_->write(bytes.subspan(bytes.size() / 2));
    }
    void sync() override {
      files_.step("sync");
      file_->sync();
    }
    void close() override {
      files_.step("close");
      file_->close();
    }

   private:
    FaultyFileSystem& files_;
    std::unique_ptr<WritableFile> file_;
  };

  void step(const std::string& name) {
    steps_.push_back(name);
    if (static_cast<int>(steps_.size()) == failing_ + 1) throw IoError("fault in " + name);
  }

  int failing_;
  std::vector<std::string> steps_;
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
  EXPECT_THAT(files.steps(),
              ElementsAre("create", "write", "sync", "close", "rename", "sync_directory"));
}

TEST(WriteFileAtomically, KeepsTheOldFileWhateverFails) {
  const test::TempDir folder;
  for (int failing = 0; failing < 5; ++failing) {
    write_file_atomically(folder / "file", "old");
    FaultyFileSystem files(failing);
    EXPECT_THROW(write_file_atomically(folder / "file", "the new one", files), IoError) << failing;
    EXPECT_TRUE(files.has_failed());
    EXPECT_EQ(read_text_file(folder / "file"), "old") << files.steps().back();
    EXPECT_THAT(names_in(folder.path()), ElementsAre("file")) << files.steps().back();
  }
}

TEST(WriteFileAtomically, HasTheWholeNewFileWhenOnlyTheFolderFails) {
  const test::TempDir folder;
  write_file_atomically(folder / "file", "old");
  FaultyFileSystem files(5);
  EXPECT_THROW(write_file_atomically(folder / "file", "the new one", files), IoError);
  EXPECT_EQ(files.steps().back(), "sync_directory");
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
  try {
    write_file_atomically(folder / "absent/file", "text");
    FAIL() << "no exception";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("absent/file"));
    EXPECT_THAT(error.what(), HasSubstr("No such file or directory"));
  }
  std::filesystem::create_directory(folder / "folder");
  EXPECT_THROW(write_file_atomically(folder / "folder", "text"), IoError);
  EXPECT_THROW(write_file_atomically(folder / "folder/", "text"), IoError);
  EXPECT_THROW(write_file_atomically("", "text"), IoError);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("folder"));
}

TEST(PosixFileSystem, SaysWhatCannotBeRenamedToWhat) {
  const test::TempDir folder;
  try {
    posix_file_system().rename(folder / "a", folder / "b");
    FAIL() << "no exception";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot rename " + (folder / "a").string() + " to " +
                                        (folder / "b").string() + ": No such file"));
  }
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
