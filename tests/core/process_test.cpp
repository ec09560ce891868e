#include "core/process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

namespace tpudist {
namespace {

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

}  // namespace
}  // namespace tpudist
