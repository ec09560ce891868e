#include "core/process.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/version.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

using test::TempDir;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Process, TellsItsCommandWithoutItsFolder) {
  EXPECT_THAT(command_line(), StartsWith("core_test --file="));
  EXPECT_THAT(command_line(), Not(HasSubstr("\n")));
}

TEST(Process, TellsItsProcessor) {
  EXPECT_THAT(processor_name(), Not(IsEmpty()));
}

TEST(Memory, KeepsThePeakOfWhatIsFreedAgain) {
  const std::uint64_t before = peak_resident_bytes();
  EXPECT_GT(before, 0u);
  std::uint64_t during = 0;
  {
    const std::vector<char> block(static_cast<std::size_t>(before) + (std::size_t{64} << 20), 1);
    during = peak_resident_bytes() + static_cast<std::size_t>(block[7]) - 1;
  }
  EXPECT_GE(during, before + (std::uint64_t{32} << 20));
  // The kernel counts in batches for each thread and processor, so that the peak is a little vague.
  EXPECT_GE(peak_resident_bytes() + (std::uint64_t{1} << 20), during);
}

int nice_of_this_thread() {
  return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
}

TEST(ThreadPriority, OnlyTheCallingThreadGivesWay) {
  const int before = nice_of_this_thread();
  int inside = -100, again = -100;
  std::thread([&] {
    give_way_to_others();
    inside = nice_of_this_thread();
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 15);
    give_way_to_others();
    again = nice_of_this_thread();
  }).join();
  EXPECT_EQ(inside, std::max(before, 10));
  EXPECT_EQ(again, std::max(before, 15));
  EXPECT_EQ(nice_of_this_thread(), before);
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(MemoryLimit, IsTheSmallestOnTheWayDown) {
  const TempDir root;
  write_file(root / "user/memory.max", "3000\n");
  write_file(root / "user/job/memory.max", "max\n");
  write_file(root / "user/job/step/memory.max", "5000\n");
  EXPECT_EQ(memory_limit(root / "", "0::/user/job/step\n"), 3000);
  EXPECT_EQ(memory_limit(root / "", "0::/user/job/step/below\n"), 3000);
  EXPECT_EQ(memory_limit(root / "", "0::/elsewhere\n"), 0);
}

TEST(MemoryLimit, KnowsTheFirstVersionOfControlGroups) {
  const TempDir root;
  write_file(root / "memory/memory.limit_in_bytes", "9223372036854771712\n");
  write_file(root / "memory/a/memory.limit_in_bytes", "7000\n");
  const std::string membership = "5:cpuset:/b\n4:memory:/a\n0::/\n";
  EXPECT_EQ(memory_limit(root / "", membership), 7000);
  EXPECT_EQ(memory_limit(root / "", "4:memory:/\n"), 0);
  EXPECT_EQ(memory_limit(root / "", ""), 0);
}

TEST(CpuQuota, IsTheSmallestOnTheWayDown) {
  const TempDir root;
  write_file(root / "user/cpu.max", "150000 100000\n");
  write_file(root / "user/job/cpu.max", "50000 100000\n");
  write_file(root / "user/job/step/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(root / "", "0::/user/job/step\n"), 0.5);
  EXPECT_EQ(cpu_quota(root / "", "0::/user\n"), 1.5);
  EXPECT_EQ(cpu_quota(root / "", "0::/elsewhere\n"), 0);
}

// A container sees its own group as the root, whatever the name of the group outside is.
TEST(CpuQuota, IsThatOfTheRootInAContainer) {
  const TempDir root;
  write_file(root / "cpu.max", "200000 100000\n");
  EXPECT_EQ(cpu_quota(root / "", "0::/\n"), 2);
  EXPECT_EQ(cpu_quota(root / "", "0::/docker/0123\n"), 2);
}

TEST(CpuQuota, KnowsTheFirstVersionOfControlGroups) {
  const TempDir root;
  write_file(root / "cpu/cpu.cfs_quota_us", "-1\n");
  write_file(root / "cpu/cpu.cfs_period_us", "100000\n");
  write_file(root / "cpu/a/cpu.cfs_quota_us", "25000\n");
  write_file(root / "cpu/a/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(cpu_quota(root / "", "4:cpu,cpuacct:/a\n0::/\n"), 0.5);
  EXPECT_EQ(cpu_quota(root / "", "4:cpuacct,cpu:/\n"), 0);
  EXPECT_EQ(cpu_quota(root / "", "4:cpuset:/a\n"), 0);
}

TEST(UsableCores, AreAtLeastOne) {
  EXPECT_GE(usable_cores(), 1);
}

TEST(Version, IsThatOfTheBuild) {
  EXPECT_THAT(std::string(version()), ::testing::ContainsRegex("^[0-9]+\\.[0-9]+\\.[0-9]+$"));
}

}  // namespace
}  // namespace tpudist
