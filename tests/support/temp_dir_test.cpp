#include "tests/support/temp_dir.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>

namespace tpudist::test {
namespace {

TEST(TempDir, IsRemovedWithItsContent) {
  std::filesystem::path path;
  {
    TempDir folder;
    path = folder.path();
    std::filesystem::create_directories(folder / "a/b");
    std::ofstream(folder / "a/b/file") << "content";
    EXPECT_TRUE(std::filesystem::exists(path / "a/b/file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

RC_GTEST_PROP(TempDir, IsUnique, ()) {
  const TempDir one, other;
  RC_ASSERT(one.path() != other.path());
}

}  // namespace
}  // namespace tpudist::test
