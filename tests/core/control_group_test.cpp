#include "core/control_group.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;
using test::TempDir;

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

TEST(CpuQuota, IsTheSmallestOnTheWayDown) {
  const TempDir root;
  write(root / "user/cpu.max", "150000 100000\n");
  write(root / "user/job/cpu.max", "50000 100000\n");
  write(root / "user/job/step/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(root / "", "0::/user/job/step\n"), 0.5);
  EXPECT_EQ(cpu_quota(root / "", "0::/user\n"), 1.5);
  EXPECT_EQ(cpu_quota(root / "", "0::/elsewhere\n"), 0);
}

// A container sees its own group as the root, whatever the name of the group outside is.
TEST(CpuQuota, IsThatOfTheRootInAContainer) {
  const TempDir root;
  write(root / "cpu.max", "200000 100000\n");
  EXPECT_EQ(cpu_quota(root / "", "0::/\n"), 2);
  EXPECT_EQ(cpu_quota(root / "", "0::/docker/0123\n"), 2);
}

TEST(CpuQuota, KnowsTheFirstVersionOfControlGroups) {
  const TempDir root;
  write(root / "cpu/cpu.cfs_quota_us", "-1\n");
  write(root / "cpu/cpu.cfs_period_us", "100000\n");
  write(root / "cpu/a/cpu.cfs_quota_us", "25000\n");
  write(root / "cpu/a/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(cpu_quota(root / "", "4:cpu,cpuacct:/a\n0::/\n"), 0.5);
  EXPECT_EQ(cpu_quota(root / "", "4:cpuacct,cpu:/\n"), 0);
  EXPECT_EQ(cpu_quota(root / "", "4:cpuset:/a\n"), 0);
}

TEST(UsableCores, AreAtLeastOne) {
  EXPECT_GE(usable_cores(), 1);
}

}  // namespace
}  // namespace tpudist
