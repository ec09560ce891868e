#include "data/loading/cache_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <vector>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

Descriptor new_file(const std::filesystem::path& path) {
  return Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
}

class CacheFileTest : public ::testing::Test {
 protected:
  // A file of two arrays.
  void write(std::uint64_t key) {
    file_ = new_file(path_);
    CacheFileWriter writer(file_, path_);
    const std::vector<std::int64_t> large{5, -6, 7};
    const std::vector<std::uint8_t> small{1, 2};
    places_[0] = {writer.reserve(24), 3};
    places_[1] = {writer.reserve(2), 2};
    writer.write(places_[1].offset, std::as_bytes(std::span(small)));
    writer.write(places_[0].offset, std::as_bytes(std::span(large)));
    const std::string directory = "what is where";
    writer.finish(key, std::as_bytes(std::span(directory)), pool_);
  }

  std::string fault(std::uint64_t key) {
    return message_of<DataError>([&] { CacheFile::open(file_, path_, key, pool_); });
  }

  TempDir folder_;
  std::filesystem::path path_ = folder_ / "file.cache";
  ThreadPool pool_{2};
  Descriptor file_;
  CacheFile::Place places_[2];
};

TEST_F(CacheFileTest, GivesArraysInPlace) {
  write(42);
  Array<std::int64_t> large;
  {
    const auto file = CacheFile::open(file_, path_, 42, pool_);
    large = file->array<std::int64_t>(places_[0]);
    EXPECT_THAT(file->array<std::uint8_t>(places_[1]), ElementsAre(1, 2));
    EXPECT_EQ(file->array<std::int64_t>({64, 0}).size(), 0u);
    const auto directory = file->directory();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(directory.data()), directory.size()),
              "what is where");
    EXPECT_EQ(file->bytes(), std::filesystem::file_size(path_));
  }
  EXPECT_THAT(large, ElementsAre(5, -6, 7));  // keeps the file mapped
}

TEST_F(CacheFileTest, RefusesPlacesBeyondTheFile) {
  write(42);
  const auto file = CacheFile::open(file_, path_, 42, pool_);
  const std::uint64_t most = ~std::uint64_t{0};
  using Place = CacheFile::Place;
  for (const Place& place :
       {Place{64, file->bytes()}, Place{64, most}, Place{most - 63, 1}, Place{65, 1}}) {
    EXPECT_THROW(file->array<std::int64_t>(place), DataError) << place.offset;
  }
}

TEST_F(CacheFileTest, FindsEveryDamage) {
  write(42);
  EXPECT_EQ(fault(42), "");
  EXPECT_THAT(fault(43), HasSubstr("was made from other data"));
  const auto size = static_cast<off_t>(std::filesystem::file_size(path_));
  for (off_t at = 0; at < size; ++at) {
    unsigned char byte = 0;
    ASSERT_EQ(::pread(file_.get(), &byte, 1, at), 1);
    for (int bit = 0; bit < 8; ++bit) {
      const unsigned char damaged = byte ^ static_cast<unsigned char>(1 << bit);
      ASSERT_EQ(::pwrite(file_.get(), &damaged, 1, at), 1);
      EXPECT_NE(fault(42), "") << at << " " << bit;
    }
    ASSERT_EQ(::pwrite(file_.get(), &byte, 1, at), 1);
  }
  EXPECT_EQ(fault(42), "");
  for (off_t kept = size - 1; kept >= 0; --kept) {
    ASSERT_EQ(::ftruncate(file_.get(), kept), 0);
    EXPECT_NE(fault(42), "") << kept;
  }
}

TEST_F(CacheFileTest, AFileThatMayNotGrowIsAnError) {
  file_ = new_file(path_);
  CacheFileWriter writer(file_, path_);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = message_of<IoError>([&] { writer.reserve(1 << 20); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(message, HasSubstr("cannot allocate 1048576 bytes for " + path_.string()));
}

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
  EXPECT_THAT(message_of<IoError>([&] { folder.make_room(300); }),
              HasSubstr("has no room for 300 B: 100 B of at most 350 B"));
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
}  // namespace tpudist::test
