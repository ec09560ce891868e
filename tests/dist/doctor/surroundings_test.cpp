#include "dist/doctor/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/support/temp_dir.hpp"

namespace tpudist::test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

TEST(McaParameter, ComesFromTheEnvironmentThenFromTheFirstFileThatHasIt) {
  const TempDir folder;
  const std::vector<fs::path> files{folder / "none", folder / "user", folder / "machine"};
  std::ofstream(files[1]) << "# patience = 1\n other = 2\nno value\n";
  std::ofstream(files[2]) << "other = 3\n  patience  =  40 \n";
  EXPECT_EQ(mca_parameter("patience", files, 5), 40);
  EXPECT_EQ(mca_parameter("other", files, 5), 2);
  EXPECT_EQ(mca_parameter("third", files, 5), 5);
  ASSERT_EQ(setenv("OMPI_MCA_patience", "-6", 1), 0);
  EXPECT_EQ(mca_parameter("patience", files, 5), -6);
  unsetenv("OMPI_MCA_patience");
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
}  // namespace tpudist::test
