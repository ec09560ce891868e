#include "core/process.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace tpudist {
namespace {

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
