#include "data/loading/cache_folder.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

using test::TempDir;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr std::uint64_t kMany = std::uint64_t{1} << 30;

void publish(const CacheFolder& folder, const std::string& name, std::size_t bytes = 10) {
  auto fresh = folder.begin(name);
  ASSERT_TRUE(fresh);
  const std::string text(bytes, 'x');
  ASSERT_EQ(::write(fresh->descriptor().get(), text.data(), bytes), static_cast<ssize_t>(bytes));
  fresh->publish();
}

TEST(CacheFolder, OpensWhatWasPublished) {
  const TempDir place;
  const CacheFolder folder(place.path(), kMany);
  EXPECT_FALSE(folder.open("a"));
  publish(folder, "a");
  EXPECT_TRUE(folder.open("a"));
  EXPECT_EQ(folder.path_of("a").parent_path().parent_path(), place.path());
}

TEST(CacheFolder, LetsOneWriteAFileAtATime) {
  const TempDir place;
  const CacheFolder folder(place.path(), kMany);
  EXPECT_EQ(folder.progress_of("a"), 0u);
  {
    const auto first = folder.begin("a");
    ASSERT_TRUE(first);
    EXPECT_FALSE(folder.begin("a"));
    EXPECT_TRUE(folder.begin("b"));
    const std::uint64_t before = folder.progress_of("a");
    EXPECT_NE(before, 0u);
    ::usleep(20'000);
    ASSERT_EQ(::write(first->descriptor().get(), "text", 4), 4);
    EXPECT_NE(folder.progress_of("a"), before);
  }
  EXPECT_FALSE(folder.open("a"));  // not published
  EXPECT_TRUE(fs::is_empty(folder.path_of("a").parent_path()));
  EXPECT_TRUE(folder.begin("a"));
}

TEST(CacheFolder, StartsAnewWhatAKilledWriterLeft) {
  const TempDir place;
  const CacheFolder folder(place.path(), kMany);
  std::ofstream(folder.path_of("a.new")) << "half of it";
  const auto fresh = folder.begin("a");
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fs::file_size(fresh->path()), 0u);
}

TEST(CacheFolder, MakesRoomByRemovingWhatNobodyUses) {
  const TempDir place;
  const CacheFolder folder(place.path(), 350);
  for (const std::string name : {"a", "b", "c"}) publish(folder, name, 100);
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(folder.path_of("b"), now - std::chrono::hours(2));
  fs::last_write_time(folder.path_of("a"), now - std::chrono::hours(1));
  folder.make_room(50);
  EXPECT_TRUE(fs::exists(folder.path_of("b")));
  const Descriptor used = folder.open("a");  // is the last used now, too
  folder.make_room(100);
  EXPECT_FALSE(fs::exists(folder.path_of("b")));
  try {
    folder.make_room(300);
    FAIL() << "should have thrown";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has no room for 300 B: 100 B of at most 350 B"));
  }
  EXPECT_FALSE(fs::exists(folder.path_of("c")));
  EXPECT_TRUE(fs::exists(folder.path_of("a")));
}

TEST(CacheFolder, RemovesAFileAfterItsLastUse) {
  const TempDir place;
  const CacheFolder folder(place.path(), kMany);
  publish(folder, "a");
  const Descriptor first = folder.open("a");
  {
    const Descriptor second = folder.open("a");
    folder.remove_if_last("a", second);
    EXPECT_TRUE(fs::exists(folder.path_of("a")));
  }
  folder.remove_if_last("a", first);
  EXPECT_FALSE(fs::exists(folder.path_of("a")));
}

}  // namespace
}  // namespace tpudist
