#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

namespace tpudist::test {

// While it lives, makes a process of root another user, because root may write anywhere.
class AnotherUser {
 public:
  AnotherUser() {
    if (root_) EXPECT_EQ(::seteuid(12345), 0);
  }
  ~AnotherUser() {
    if (root_) EXPECT_EQ(::seteuid(0), 0);
  }
  AnotherUser(const AnotherUser&) = delete;
  AnotherUser& operator=(const AnotherUser&) = delete;

 private:
  const bool root_ = ::geteuid() == 0;
};

}  // namespace tpudist::test
