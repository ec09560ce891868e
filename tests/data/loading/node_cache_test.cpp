// One copy of a data set for all processes of a node, and everything that may be wrong with it.

#include "data/loading/node_cache.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <thread>

#include "core/log.hpp"
#include "tests/data/loading/dataset_case.hpp"
#include "tests/support/another_user.hpp"

namespace tpudist::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class NodeCacheTest : public DatasetTest {
 protected:
  void SetUp() override {
    set_up_logging(0, 1);  // on standard error
    add(many_configs(3000, 60), "byte_codes");
    add(many_configs(3000, 500), "short_codes");
    add(never_equal_configs(500), "no_codes");
    add(NpzFixture::make_tile(), "kernel");
    convert_all();
  }

  DatasetOptions shared(const Collection& collection = kLayout) {
    DatasetOptions result = options(collection);
    result.duplicates = DuplicatesPolicy::min;
    result.cache = CacheMode::memory;
    result.node_cache = NodeCacheOptions::of((place_ / "node").string(), std::uint64_t{1} << 30);
    return result;
  }

  fs::path folder() const { return place_ / "node" / fmt::format("tpudist-{}", ::geteuid()); }

  // The only file of the cache.
  fs::path file() const {
    fs::path only;
    for (const auto& entry : fs::directory_iterator(folder())) {
      EXPECT_TRUE(only.empty()) << only << " and " << entry;
      only = entry.path();
    }
    return only;
  }

  std::size_t files() const {
    if (!fs::exists(folder())) return 0;
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder()), fs::directory_iterator()));
  }

  // Opens as `options` say and compares all with what is read without a cache.
  void expect_right(const DatasetOptions& options, bool expect_shared) {
    DatasetOptions plain = options;
    plain.node_cache = {};
    const Dataset expected = Dataset::open(plain, pool_), found = Dataset::open(options, pool_);
    EXPECT_EQ(found.shared_bytes() > 0, expect_shared);
    EXPECT_EQ(expected.shared_bytes(), 0u);
    EXPECT_EQ(found.selection_hash(), expected.selection_hash());
    EXPECT_EQ(found.in_memory(), expected.in_memory());
    expect_equal_data(found, expected);
  }

  // The warnings while `body` runs.
  static std::string warnings(const std::function<void()>& body) {
    ::testing::internal::CaptureStderr();
    body();
    spdlog::default_logger()->flush();
    return ::testing::internal::GetCapturedStderr();
  }

  void flip_byte(const fs::path& path, std::uint64_t at) {
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const auto byte = static_cast<char>(stream.get() ^ 0x10);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(byte);
    ASSERT_TRUE(stream.good());
  }

  TempDir place_;
};

TEST_F(NodeCacheTest, GivesWhatTheShardsGive) {
  for (const Collection& collection : {kLayout, kTile}) {
    for (const CacheMode mode : {CacheMode::memory, CacheMode::stream, CacheMode::automatic}) {
      for (const auto policy : {DuplicatesPolicy::min, DuplicatesPolicy::keep}) {
        DatasetOptions options = shared(collection);
        options.cache = mode;
        options.duplicates = policy;
        options.max_configs = policy == DuplicatesPolicy::keep ? 3 : 0;
        expect_right(options, true);  // writes the file
        expect_right(options, true);  // takes it
      }
    }
  }
  // auto is memory here, and takes the same files.
  EXPECT_EQ(files(), 8u);
}

TEST_F(NodeCacheTest, GivesReducedGraphs) {
  DatasetOptions options = shared();
  options.reduction.wanted = true;
  expect_right(options, true);
  expect_right(options, true);
  expect_right(shared(), true);
  EXPECT_EQ(files(), 2u);
}

TEST_F(NodeCacheTest, NeedsNoShardsOnceTheFileIsThere) {
  const DatasetOptions options = shared();
  expect_right(options, true);
  const auto before = fs::last_write_time(file());
  const auto entry = list_graphs(folder_ / "shards", kLayout).at(0);
  { std::fstream(entry.shard, std::ios::in | std::ios::out).write("damaged!", 8); }
  const Dataset dataset = Dataset::open(options, pool_);
  EXPECT_GT(dataset.shared_bytes(), 0u);
  EXPECT_EQ(dataset.resident_bytes(), 0u);
  EXPECT_EQ(dataset.shared_bytes(), fs::file_size(file()));
  EXPECT_GE(fs::last_write_time(file()), before);  // when it was used
}

TEST_F(NodeCacheTest, KeepsItsFolderAndFilesFromOthers) {
  expect_right(shared(), true);
  struct stat found {};
  ASSERT_EQ(::stat(folder().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0700u);
  ASSERT_EQ(::stat(file().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
}

TEST_F(NodeCacheTest, MakesADamagedFileAnew) {
  const DatasetOptions options = shared();
  expect_right(options, true);
  const fs::path path = file();
  const std::uint64_t size = fs::file_size(path);
  // Every byte of the header, and some of the rest.
  for (std::uint64_t at = 0; at < size; at += at < 64 ? 5 : size / 40) {
    flip_byte(path, at);
    EXPECT_THAT(warnings([&] { expect_right(options, true); }),
                AllOf(HasSubstr(path.string() + ": "), HasSubstr("it is made anew")))
        << at;
  }
  for (const std::uint64_t kept :
       {std::uint64_t{0}, std::uint64_t{10}, std::uint64_t{64}, size / 2, size - 1, size + 64}) {
    fs::resize_file(path, kept);
    EXPECT_THAT(warnings([&] { expect_right(options, true); }), HasSubstr("it is made anew"));
  }
  EXPECT_EQ(warnings([&] { expect_right(options, true); }), "");
  EXPECT_EQ(file(), path);
}

TEST_F(NodeCacheTest, DoesNotTakeAFileOfOtherData) {
  const DatasetOptions options = shared();
  expect_right(options, true);
  const fs::path first = file();
  DatasetOptions other = options;
  other.duplicates = DuplicatesPolicy::median;
  expect_right(other, true);
  ASSERT_EQ(files(), 2u);
  for (const auto& entry : fs::directory_iterator(folder())) {
    if (entry.path() != first)
      fs::copy_file(entry.path(), first, fs::copy_options::overwrite_existing);
  }
  EXPECT_THAT(warnings([&] { expect_right(options, true); }),
              HasSubstr("was made from other data; it is made anew"));
}

TEST_F(NodeCacheTest, TakesMemoryOfItsOwnWhereTheFolderIsNotSafe) {
  const DatasetOptions options = shared();
  const auto expect_refusal = [&](const std::string& reason) {
    EXPECT_THAT(warnings([&] { expect_right(options, false); }),
                AllOf(HasSubstr(reason), HasSubstr("keeps a copy of the data of its own")));
  };
  fs::create_directories(folder().parent_path());
  const TempDir elsewhere;
  fs::create_directory_symlink(elsewhere.path(), folder());
  expect_refusal("is a symbolic link and no folder: remove it");
  EXPECT_TRUE(fs::is_empty(elsewhere.path()));
  fs::remove(folder());
  std::ofstream(folder()) << "a file";
  expect_refusal("is a file and no folder: remove it");
  fs::remove(folder());
  fs::create_directory(folder());
  fs::permissions(folder(), fs::perms{0755});
  expect_refusal("may be entered by other users (mode 0755): chmod 700 it");
  fs::permissions(folder(), fs::perms{0700});
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(folder().c_str(), 12345, 12345), 0);
    expect_refusal("belongs to user 12345, not to this one (0): take another folder");
    ASSERT_EQ(::chown(folder().c_str(), 0, 0), 0);
  }
  expect_right(options, true);

  // A link or a foreign file in the place of the file itself.
  const fs::path path = file();
  fs::rename(path, elsewhere / "moved");
  fs::create_symlink(elsewhere / "moved", path);
  expect_refusal("cannot open " + path.string());
  EXPECT_TRUE(fs::exists(elsewhere / "moved"));
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expect_refusal("is no file of this user: remove it");
  fs::remove(path);
  fs::create_symlink(elsewhere / "moved", path.string() + ".new");
  expect_refusal("cannot create " + path.string() + ".new");
}

TEST_F(NodeCacheTest, TakesMemoryOfItsOwnWhereItMayNotWrite) {
  DatasetOptions options = shared();
  options.node_cache.place = "/proc/tpudist";
  EXPECT_THAT(warnings([&] { expect_right(options, false); }),
              HasSubstr("data.cache_dir: cannot make the folder /proc/tpudist"));
}

TEST_F(NodeCacheTest, TakesMemoryOfItsOwnInAFolderThatItMayOnlyRead) {
  const DatasetOptions options = shared();
  fs::create_directories(options.node_cache.place);
  for (const fs::path& path : {folder_.path(), place_.path(), options.node_cache.place})
    fs::permissions(path, fs::perms{0755});
  fs::permissions(options.node_cache.place, fs::perms{0555});
  const std::string said = warnings([&] {
    const AnotherUser user;
    expect_right(options, false);
    expect_right(options, false);
  });
  fs::permissions(options.node_cache.place, fs::perms{0755});
  EXPECT_THAT(said, HasSubstr("data.cache_dir: cannot make the folder " +
                              options.node_cache.place.string()));
  EXPECT_THAT(said,
              HasSubstr("Permission denied; this process keeps a copy of the data of its own"));
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
}

TEST_F(NodeCacheTest, TakesMemoryOfItsOwnWhereThereIsNoRoom) {
  DatasetOptions options = shared();
  options.node_cache.most_bytes = 10'000;
  EXPECT_THAT(warnings([&] { expect_right(options, false); }),
              AllOf(HasSubstr("has no room for "), HasSubstr("(data.cache_size)")));
  EXPECT_EQ(files(), 0u);
}

TEST_F(NodeCacheTest, RemovesWhatWasUsedLongestAgo) {
  DatasetOptions first = shared(), second = shared(), third = shared();
  second.include = {"byte_codes", "short_codes"};
  third.include = {"byte_codes"};
  expect_right(first, true);
  const fs::path oldest = file();
  expect_right(second, true);
  const auto hour = std::chrono::hours(1);
  fs::last_write_time(oldest, fs::file_time_type::clock::now() - hour);
  std::uint64_t held = 0;
  for (const auto& entry : fs::directory_iterator(folder())) held += entry.file_size();

  third.node_cache.most_bytes = held + 1000;  // one of them has to go
  expect_right(third, true);
  EXPECT_EQ(files(), 2u);
  EXPECT_FALSE(fs::exists(oldest));

  // What is in use stays, and so the new one finds no room.
  const Dataset used_second = Dataset::open(second, pool_),
                used_third = Dataset::open(third, pool_);
  first.node_cache.most_bytes = held;
  EXPECT_THAT(warnings([&] { expect_right(first, false); }), HasSubstr("has no room for "));
  EXPECT_EQ(files(), 2u);
  EXPECT_GT(used_second.slate(0, all_rows(used_second, 0)).states.size(), 0u);
}

TEST_F(NodeCacheTest, OutlivesTheRemovalOfItsFile) {
  const Dataset dataset = Dataset::open(shared(), pool_);
  fs::remove_all(folder());
  const Slate slate = dataset.slate(0, all_rows(dataset, 0));
  EXPECT_FALSE(slate.states.empty());
  expect_right(shared(), true);  // and another process makes it anew
}

TEST_F(NodeCacheTest, LeavesNothingWhereItIsNotKept) {
  DatasetOptions options = shared();
  options.node_cache.keep = false;
  DatasetOptions other = shared();
  other.include = {"byte_codes"};
  { const Dataset kept = Dataset::open(other, pool_); }
  std::ofstream(folder() / "left-by-kill-9.cache.new") << "half of it";
  EXPECT_EQ(files(), 2u);
  {
    const Dataset first = Dataset::open(options, pool_);
    { const Dataset second = Dataset::open(options, pool_); }
    EXPECT_EQ(files(), 1u);  // the first still uses it
  }
  EXPECT_EQ(files(), 0u);
}

// Processes that end well where body(a pool of their own) returns true.
template <typename Body>
std::vector<pid_t> processes(int count, const Body& body) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool good = [&] {
        ThreadPool own(1);
        return body(own);
      }();
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  return children;
}

void await_all(const std::vector<pid_t>& children) {
  for (const pid_t child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(NodeCacheTest, ManyProcessesAtOnceShareOneFile) {
  const DatasetOptions options = shared();
  await_all(processes(
      6, [&](ThreadPool& own) { return Dataset::open(options, own).shared_bytes() > 0; }));
  EXPECT_EQ(files(), 1u);
  expect_right(options, true);
}

// What the kernel counts of a process's memory, each page shared out among those that map it:
// bytes.
std::uint64_t proportional_bytes(pid_t process) {
  std::ifstream rollup(fmt::format("/proc/{}/smaps_rollup", process));
  std::string word;
  std::uint64_t kibibytes = 0;
  while (rollup >> word) {
    if (word == "Pss:" && rollup >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

// The sum over processes that hold the data set at the same time.
std::uint64_t memory_of(int count, const DatasetOptions& options) {
  int ready[2], go[2];
  EXPECT_EQ(::pipe(ready) + ::pipe(go), 0);
  const std::vector<pid_t> children = processes(count, [&](ThreadPool& own) {
    const Dataset dataset = Dataset::open(options, own);
    const Slate slate = dataset.slate(0, all_rows(dataset, 0));  // touches every page
    char byte = slate.states.empty() ? 'n' : 'y';
    return ::write(ready[1], &byte, 1) == 1 && ::read(go[0], &byte, 1) == 1;
  });
  std::string bytes(count, ' ');
  for (char& byte : bytes) EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  std::uint64_t sum = 0;
  for (const pid_t child : children) sum += proportional_bytes(child);
  EXPECT_EQ(::write(go[1], bytes.data(), bytes.size()), count);
  await_all(children);
  for (const int end : {ready[0], ready[1], go[0], go[1]}) ::close(end);
  return sum;
}

TEST_F(NodeCacheTest, EightProcessesTakeTheMemoryOfOne) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory counts as that of the process";
#endif
  add(never_equal_configs(400'000), "large");  // 14 MB of features, 8 MB of run times and groups
  convert_all();
  DatasetOptions options = shared();
  options.include = {"large"};
  options.node_cache.place = "/dev/shm/" + place_.path().filename().string();
  DatasetOptions plain = options;
  plain.node_cache = {};
  if (proportional_bytes(::getpid()) == 0) GTEST_SKIP() << "/proc tells no proportional sizes here";
  const std::uint64_t apart = memory_of(8, plain), together = memory_of(8, options);
  const Dataset dataset = Dataset::open(options, pool_);
  const std::uint64_t file = dataset.shared_bytes();
  fs::remove_all(options.node_cache.place);
  ASSERT_GT(file, 20'000'000u);
  // Reading shards leaves some holes in the memory of each process besides.
  const double copies =
      (static_cast<double>(apart) - static_cast<double>(together)) / static_cast<double>(file);
  EXPECT_GT(copies, 6.9);
  EXPECT_LT(copies, 8.5);
}

// Writers that are killed at many moments leave nothing that the next one takes for whole.
TEST_F(NodeCacheTest, SurvivesWritersThatAreKilled) {
  const DatasetOptions options = shared();
  int killed = 0;
  for (int round = 0; round < 30; ++round) {
    fs::remove_all(folder());
    const pid_t child = ::fork();
    if (child == 0) {
      ThreadPool own(1);
      Dataset::open(options, own);
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(300 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    killed += WIFSIGNALED(status);
    EXPECT_EQ(warnings([&] { expect_right(options, true); }), "");
    EXPECT_EQ(files(), 1u);
  }
  EXPECT_GT(killed, 3);
}

TEST_F(NodeCacheTest, DoesNotWaitForAWriterThatIsStopped) {
  DatasetOptions options = shared();
  options.node_cache.patience_s = 1;
  expect_right(options, true);
  const fs::path path = file(), fresh = path.string() + ".new";
  fs::remove(path);
  const int held = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  EXPECT_THAT(warnings([&] { expect_right(options, false); }),
              HasSubstr("another process has begun to write " + path.string() +
                        " and has not got on for 1 s"));
  ::close(held);
  expect_right(options, true);
  EXPECT_EQ(files(), 1u);
}

TEST_F(NodeCacheTest, DamagedShardsAreStillErrors) {
  const auto entry = list_graphs(folder_ / "shards", kLayout).at(0);
  const std::uint64_t size = fs::file_size(entry.shard);
  for (std::uint64_t at = size / 2; at < size / 2 + 200; ++at) flip_byte(entry.shard, at);
  EXPECT_THROW(Dataset::open(shared(), pool_), Error);
  EXPECT_EQ(files(), 0u);
}

TEST_F(NodeCacheTest, AFullDiskIsAWarning) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may mount a small file system";
  const fs::path small = place_ / "small";
  fs::create_directory(small);
  const std::string mount = "mount -t tmpfs -o size=64k tmpfs " + small.string() + " 2> /dev/null";
  if (std::system(mount.c_str()) != 0) GTEST_SKIP() << "this machine does not let root mount";
  DatasetOptions options = shared();
  options.node_cache.place = small;
  EXPECT_THAT(warnings([&] { expect_right(options, false); }), HasSubstr("has no room for "));
  EXPECT_EQ(std::system(("umount " + small.string()).c_str()), 0);
}

TEST(EstimatedBytes, CountConfigEdgesAndSegments) {
  std::vector<GraphEntry> entries(2);
  entries[0].nodes = entries[1].nodes = 200'000;
  entries[0].config_nodes = 10;
  entries[1].config_nodes = 100'000;
  const std::uint64_t plain = estimated_bytes(entries, false, {});
  EXPECT_EQ(estimated_bytes(entries, false, {.config_edges = true}) - plain,
            8u * (10 * 9 / 2 + kMostConfigEdges));
  EXPECT_EQ(estimated_bytes(entries, false, {.segments = SegmentCut::metis}) - plain, 4u * 400'000);
}

TEST(NodeCacheOptions, KnowWhereAClusterHasRoom) {
  EXPECT_TRUE(NodeCacheOptions::of("none", 1).place.empty());
  EXPECT_EQ(NodeCacheOptions::of("/fast", 7).place, "/fast");
  EXPECT_TRUE(NodeCacheOptions::of("/fast", 7).keep);
  EXPECT_EQ(NodeCacheOptions::of("/fast", 7).most_bytes, 7u);
  ::unsetenv("SLURM_TMPDIR");
  EXPECT_EQ(NodeCacheOptions::of("auto", 1).place, "/dev/shm");
  EXPECT_FALSE(NodeCacheOptions::of("auto", 1).keep);
  ::setenv("SLURM_TMPDIR", "/local/job", 1);
  EXPECT_EQ(NodeCacheOptions::of("auto", 1).place, "/local/job");
  EXPECT_TRUE(NodeCacheOptions::of("auto", 1).keep);
  ::unsetenv("SLURM_TMPDIR");
}

}  // namespace
}  // namespace tpudist::test
