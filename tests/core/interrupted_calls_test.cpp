// Files of core/ where a signal interrupts every second call and half is read or written at a time.

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/folder_lock.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "tests/support/faulty_io.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

using test::FaultyIo;
using test::TempDir;

class InterruptedCalls : public ::testing::Test {
 protected:
  // Longer than what is read at a time.
  static std::string long_text() {
    std::string text;
    for (int i = 0; text.size() < 3'000'000; ++i) text += std::to_string(i) + '\n';
    return text;
  }

  const TempDir folder_;
  const FaultyIo faults_{"interrupt:" + folder_.path().string()};
};

TEST_F(InterruptedCalls, WriteAndReadWholeFiles) {
  const std::string text = long_text();
  write_file_atomically(folder_ / "file", text);
  const int before = faults_.reads();
  EXPECT_TRUE(read_text_file(folder_ / "file") == text);
  EXPECT_GT(faults_.reads() - before, 10);
  EXPECT_EQ(hash_file(folder_ / "file"), hash64(std::as_bytes(std::span(text))));
  EXPECT_THROW(read_text_file(folder_ / "none"), IoError);
}

TEST_F(InterruptedCalls, Append) {
  const std::string text = long_text();
  append_to_file(folder_ / "file", text);
  append_to_file(folder_ / "file", "the end\n");
  EXPECT_TRUE(read_text_file(folder_ / "file") == text + "the end\n");
}

TEST_F(InterruptedCalls, Lock) {
  {
    const FolderLock lock(folder_.path(), "a test", "lock");
    EXPECT_TRUE(lock_holder(folder_.path(), "lock").value_or("").starts_with("a test, process "));
    EXPECT_THROW(FolderLock(folder_.path(), "another", "lock"), InUseError);
  }
  EXPECT_FALSE(lock_holder(folder_.path(), "lock").has_value());
}

// 524 is ENOTSUPP of the kernel, which Cray DVS answers.
TEST(FaultyLocks, AreAWarningWhereTheFileSystemHasNone) {
  const TempDir folder;
  for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL, ENOTTY, EPROTONOSUPPORT, 524}) {
    const FaultyIo faults("lock=" + std::to_string(error) + ":" + folder.path().string());
    ::testing::internal::CaptureStderr();
    set_up_logging(0, 1);
    EXPECT_NO_THROW(FolderLock(folder.path(), "a test")) << error;
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find("this file system has no locks ("), std::string::npos) << text;
    EXPECT_EQ(text.find("Unknown"), std::string::npos) << text;
    EXPECT_FALSE(lock_holder(folder.path()));
  }
  const FaultyIo faults("lock=" + std::to_string(EIO) + ":" + folder.path().string());
  EXPECT_THROW(FolderLock(folder.path(), "a test"), IoError);
}

TEST_F(InterruptedCalls, MakeAPrivateFolder) {
  const PrivateFolder made(folder_ / "place");
  EXPECT_TRUE(std::filesystem::is_directory(made.path()));
}

}  // namespace
}  // namespace tpudist
