// Shards and caches on a disk that fails, and where signals interrupt every second call.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <atomic>
#include <cerrno>

#include "core/log.hpp"
#include "data/loading/cache_file.hpp"
#include "tests/data/loading/dataset_case.hpp"
#include "tests/support/faulty_io.hpp"

namespace tpudist::test {
namespace {

class FaultyReads : public DatasetTest {
 protected:
  void SetUp() override {
    add(many_configs(12'000, 60), "byte_codes");
    add(never_equal_configs(300), "no_codes");
  }

  DatasetOptions streamed() const {
    DatasetOptions result = options();
    result.cache = CacheMode::stream;
    result.cache_bytes = 0;
    return result;
  }

  // All configurations of all graphs, one after the other.
  static std::vector<float> all_features(const Dataset& dataset) {
    std::vector<float> all;
    for (int g = 0; g < dataset.size(); ++g) {
      const auto features = features_of(dataset, dataset.slate(g, all_rows(dataset, g)));
      all.insert(all.end(), features.begin(), features.end());
    }
    return all;
  }
};

// From each read on, one after the other: opening, static arrays, chunks.
TEST_F(FaultyReads, EndWithTheSystemsReason) {
  convert_all();
  const int wanted = [&] {
    const FaultyIo none("slow=0:shard-");
    all_features(Dataset::open(streamed(), pool_));
    return none.reads();
  }();
  ASSERT_GT(wanted, 50);
  for (int read = 0; read < wanted; ++read) {
    const FaultyIo faults("error=" + std::to_string(read) + ":shard-");
    try {
      all_features(Dataset::open(streamed(), pool_));
      ADD_FAILURE() << "no error at read " << read;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("shard-")) << read;
      EXPECT_THAT(error.what(), ::testing::EndsWith(": Input/output error")) << read;
      EXPECT_EQ(error.kind(), ErrorKind::failed) << read;
    }
  }
}

TEST_F(FaultyReads, GoOnWhenTheyAreInterrupted) {
  convert_all();
  const std::vector<float> expected = all_features(open());
  const TempDir place;
  const FaultyIo faults("interrupt:" + folder_.path().parent_path().string());
  EXPECT_TRUE(all_features(Dataset::open(streamed(), pool_)) == expected);
  EXPECT_GT(faults.reads(), 50);
  DatasetOptions shared = options();
  shared.cache = CacheMode::memory;
  shared.node_cache = NodeCacheOptions::of(place.path().string(), std::uint64_t{1} << 30);
  for (int i = 0; i < 2; ++i) {  // writes the cache, takes it
    const Dataset dataset = Dataset::open(shared, pool_);
    EXPECT_GT(dataset.shared_bytes(), 0u);
    EXPECT_TRUE(all_features(dataset) == expected);
  }
}

// Where files cannot be locked, processes could not tell that another one writes the cache.
TEST_F(FaultyReads, GoWithoutACacheWhereTheFileSystemHasNoLocks) {
  convert_all();
  const std::vector<float> expected = all_features(open());
  const TempDir place;
  for (const int error : {ENOLCK, ENOSYS}) {
    const FaultyIo faults("lock=" + std::to_string(error) + ":" + place.path().string());
    DatasetOptions shared = options();
    shared.cache = CacheMode::memory;
    shared.node_cache = NodeCacheOptions::of(place.path().string(), std::uint64_t{1} << 30);
    ::testing::internal::CaptureStderr();
    set_up_logging(0, 1);
    const Dataset dataset = Dataset::open(shared, pool_);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                ::testing::ContainsRegex("data.cache_dir: cannot lock .*: .*; this process keeps a "
                                         "copy of the data of its own"));
    EXPECT_EQ(dataset.shared_bytes(), 0u);
    EXPECT_TRUE(all_features(dataset) == expected);
  }
}

TEST_F(FaultyReads, AreWrittenTheSameWhenInterrupted) {
  convert_all();
  const auto entry = list_graphs(folder_ / "shards", kLayout).at(0);
  const std::uint64_t expected = hash_file(entry.shard);
  std::filesystem::remove_all(folder_ / "shards");
  const FaultyIo faults("interrupt:" + folder_.path().string());
  convert_all();
  EXPECT_EQ(hash_file(entry.shard), expected);
}

// A real timer: the system takes back what a call has allocated when a signal interrupts it.
TEST_F(FaultyReads, LetACacheBeAllocatedUnderSignals) {
  const Descriptor file(::open("/dev/shm", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  ASSERT_TRUE(file) << "/dev/shm";
  struct sigaction action {
  }, before{};
  static std::atomic<int> signals;
  signals = 0;
  action.sa_handler = [](int) { ++signals; };
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  const itimerval every{{0, 1000}, {0, 1000}}, never{};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &every, nullptr), 0);
  constexpr std::uint64_t kBytes = std::uint64_t{32} << 20;  // milliseconds of work
  CacheFileWriter(file, "/dev/shm").reserve(kBytes);
  ASSERT_EQ(::setitimer(ITIMER_REAL, &never, nullptr), 0);
  ASSERT_EQ(::sigaction(SIGALRM, &before, nullptr), 0);
  EXPECT_GT(signals, 0);
  struct stat found {};
  ASSERT_EQ(::fstat(file.get(), &found), 0);
  EXPECT_GE(static_cast<std::uint64_t>(found.st_size), kBytes);
}

}  // namespace
}  // namespace tpudist::test
