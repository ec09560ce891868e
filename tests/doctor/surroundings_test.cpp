#include "doctor/surroundings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(MemoryLimit, IsTheSmallestOnTheWayDown) {
  const TempDir root;
  write(root / "user/memory.max", "3000\n");
  write(root / "user/job/memory.max", "max\n");
  write(root / "user/job/step/memory.max", "5000\n");
  EXPECT_EQ(memory_limit(root / "", "0::/user/job/step\n"), 3000);
  EXPECT_EQ(memory_limit(root / "", "0::/user/job/step/below\n"), 3000);
  EXPECT_EQ(memory_limit(root / "", "0::/elsewhere\n"), 0);
}

TEST(MemoryLimit, KnowsTheFirstVersionOfControlGroups) {
  const TempDir root;
  write(root / "memory/memory.limit_in_bytes", "9223372036854771712\n");
  write(root / "memory/a/memory.limit_in_bytes", "7000\n");
  const std::string membership = "5:cpuset:/b\n4:memory:/a\n0::/\n";
  EXPECT_EQ(memory_limit(root / "", membership), 7000);
  EXPECT_EQ(memory_limit(root / "", "4:memory:/\n"), 0);
  EXPECT_EQ(memory_limit(root / "", ""), 0);
}

TEST(LoadedLibraries, AreListedOnceByTheNameOfTheirFile) {
  const std::string maps =
      "7f00-7f01 r--p 00000000 08:01 12 /a/libnccl.so.2\n"
      "7f01-7f02 r-xp 00001000 08:01 12 /a/libnccl.so.2\n"
      "7f02-7f03 r-xp 00001000 08:01 12 /a/libnccl.so.2/libother.so\n"
      "7f04-7f05 rw-p 00000000 00:00 0 [heap]\n"
      "7f05-7f06 r--p 00000000 08:01 13 /b c/libnccl.so.2.28\n";
  EXPECT_THAT(loaded_libraries(maps, "libnccl.so"),
              ElementsAre("/a/libnccl.so.2", "/b c/libnccl.so.2.28"));
  EXPECT_THAT(loaded_libraries("", "libnccl.so"), IsEmpty());
}

TEST(TryFolder, TakesTheNextOneThatIsThereAndLeavesNothing) {
  const TempDir folder;
  const FolderFacts facts = try_folder(folder / "runs" / "nlp");
  EXPECT_EQ(fs::path(facts.path), fs::path(folder / "x").parent_path());
  EXPECT_TRUE(facts.writable) << facts.problem;
  EXPECT_TRUE(facts.locks);
  EXPECT_GT(facts.free_bytes, 0);
  EXPECT_TRUE(fs::is_empty(facts.path));
}

TEST(TryFolder, SaysWhyOneCannotWrite) {
  const FolderFacts facts = try_folder("/proc/no-runs");
  EXPECT_EQ(facts.path, "/proc");
  EXPECT_FALSE(facts.writable);
  EXPECT_FALSE(facts.problem.empty());
}

}  // namespace
}  // namespace tpudist
