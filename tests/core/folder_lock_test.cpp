#include "core/folder_lock.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using tpudist::test::TempDir;

// What a second one is told; "" where there is nobody.
std::string lock_refusal(const std::filesystem::path& folder) {
  return test::message_of<Error>([&] { const FolderLock lock(folder, "tpudist second"); });
}

TEST(FolderLock, TellsTheSecondWhoHoldsIt) {
  const TempDir folder;
  const FolderLock lock(folder.path(), "tpudist train");
  const std::string message = lock_refusal(folder.path());
  EXPECT_THAT(message, HasSubstr(folder.path().string() + ": is in use by tpudist train, process " +
                                 std::to_string(::getpid()) + " of user "));
  EXPECT_THAT(message, MatchesRegex(".* on .+, since 20..-..-.. ..:..:.. UTC; .*"));
  EXPECT_EQ(lock_refusal(folder.path()), message);  // and being refused changes nothing
}

TEST(FolderLock, GoesWithItsObjectAndLeavesNoFile) {
  const TempDir folder;
  { const FolderLock lock(folder.path(), "tpudist train"); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(lock_refusal(folder.path()), "");
}

TEST(FolderLock, KnowsWhereItsFolderWent) {
  const TempDir folder;
  const std::filesystem::path before = folder / "before", after = folder / "after";
  std::filesystem::create_directory(before);
  {
    const FolderLock lock(before, "tpudist train");
    EXPECT_EQ(lock.new_folder(), "");
    std::filesystem::rename(before, after);
    EXPECT_EQ(lock.new_folder(), std::filesystem::canonical(after));
    EXPECT_THAT(lock_refusal(after), HasSubstr("is in use by "));
  }
  EXPECT_TRUE(std::filesystem::is_empty(after));
}

TEST(FolderLock, AFileLeftBehindLocksNothing) {
  const TempDir folder;
  std::ofstream(folder / std::string(kLockName)) << "tpudist train, process 1 of user nobody\n";
  EXPECT_EQ(lock_refusal(folder.path()), "");
}

TEST(FolderLock, TakesAFileThatItMayNotWrite) {
  const TempDir folder;
  const auto file = folder / std::string(kLockName);
  std::ofstream(file) << "";
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  const FolderLock lock(folder.path(), "tpudist train");
  EXPECT_THAT(lock_refusal(folder.path()), HasSubstr("is in use by "));
}

TEST(FolderLock, GoesWithAProcessThatIsKilled) {
  const TempDir folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const FolderLock lock(folder.path(), "tpudist train");
    const char byte = 1;
    if (::write(ready[1], &byte, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(lock_refusal(folder.path()), HasSubstr("process " + std::to_string(child) + " "));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(lock_refusal(folder.path()), "");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(FolderLock, NamesAFolderThatIsNotThere) {
  const TempDir folder;
  EXPECT_THAT(lock_refusal(folder / "none"), HasSubstr((folder / "none").string()));
}

TEST(FolderLockTest, TellsWhoHoldsItAndChangesNothing) {
  const TempDir folder;
  EXPECT_FALSE(lock_holder(folder.path()));
  EXPECT_FALSE(std::filesystem::exists(folder / kLockName));
  {
    const FolderLock lock(folder.path(), "tpudist train");
    const auto holder = lock_holder(folder.path());
    ASSERT_TRUE(holder);
    EXPECT_EQ(holder->find("tpudist train, process"), 0u);
    EXPECT_FALSE(lock_holder(folder.path(), "other"));
  }
  std::ofstream(folder / kLockName) << "left by a process that was killed";
  EXPECT_FALSE(lock_holder(folder.path()));
}

}  // namespace
}  // namespace tpudist
