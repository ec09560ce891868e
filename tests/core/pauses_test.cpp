#include "core/pauses.hpp"

#include <gtest/gtest.h>

namespace tpudist {
namespace {

using namespace std::chrono_literals;

TEST(PauseAfter, SleepsOnlyInALongWait) {
  EXPECT_EQ(pause_after(0us, 1ms), 0us);
  EXPECT_EQ(pause_after(49us, 1ms), 0us);
  EXPECT_EQ(pause_after(50us, 1ms), 25us);
  EXPECT_EQ(pause_after(50us, 20us), 20us);
  EXPECT_EQ(pause_after(1ms, 1ms), 500us);
  EXPECT_EQ(pause_after(1s, 1ms), 1ms);
}

}  // namespace
}  // namespace tpudist
