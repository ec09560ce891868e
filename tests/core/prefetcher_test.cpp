#include "core/prefetcher.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/bounded_queue.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using namespace std::chrono_literals;

TEST(Prefetcher, HandsOutItemsInOrderWhoeverIsReadyFirst) {
  Prefetcher<std::string> items(7, 8, 4, [](std::int64_t i) {
    if (i % 3 == 0) std::this_thread::sleep_for(2ms);  // others overtake
    return std::to_string(i);
  });
  for (int i = 7; i < 207; ++i) EXPECT_EQ(items.next(), std::to_string(i));
}

TEST(Prefetcher, MakesEachItemOnce) {
  std::atomic<int> calls = 0;
  constexpr int kDepth = 5;
  {
    Prefetcher<int> items(0, kDepth, 3, [&](std::int64_t i) {
      ++calls;
      return static_cast<int>(i);
    });
    for (int i = 0; i < 100; ++i) EXPECT_EQ(items.next(), i);
  }
  EXPECT_GE(calls, 100);
  EXPECT_LE(calls, 100 + kDepth);
}

// An item that counts how many of its kind live.
class Counted {
 public:
  explicit Counted(std::atomic<int>& alive) : alive_(&alive) { ++*alive_; }
  Counted(Counted&& other) noexcept : alive_(other.alive_) { ++*alive_; }
  ~Counted() { --*alive_; }

 private:
  std::atomic<int>* alive_;
};

TEST(Prefetcher, HoldsAtMostDepthItems) {
  std::atomic<int> begun = 0, alive = 0;
  {
    constexpr int kDepth = 4;
    Prefetcher<std::unique_ptr<Counted>> items(0, kDepth, 8, [&](std::int64_t) {
      ++begun;
      return std::make_unique<Counted>(alive);
    });
    for (int taken = 0; taken < 50; ++taken) {
      EXPECT_LE(begun, taken + kDepth);
      const auto item = items.next();
      EXPECT_LE(alive, kDepth + 1);  // and the one in hand
    }
    std::this_thread::sleep_for(5ms);  // time enough for a thread that ran ahead
    EXPECT_EQ(begun, 50 + kDepth);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Prefetcher, RethrowsAtTheItemThatFailedAndGoesOn) {
  Prefetcher<int> items(0, 4, 2, [](std::int64_t i) {
    if (i == 3) throw std::runtime_error("item 3 is broken");
    return static_cast<int>(i);
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(items.next(), i);
  EXPECT_EQ(test::message_of<std::runtime_error>([&] { items.next(); }), "item 3 is broken");
  EXPECT_EQ(items.next(), 4);
}

TEST(Prefetcher, PassesOnWhatIsNoStdException) {
  Prefetcher<int> items(0, 1, 1, [](std::int64_t) -> int { throw 42; });
  EXPECT_THROW(items.next(), int);
}

TEST(Prefetcher, StopsWhileThreadsWaitForRoom) {
  for (int round = 0; round < 50; ++round) {
    Prefetcher<int> items(0, 2, 4, [](std::int64_t i) { return static_cast<int>(i); });
    for (int i = 0; i < round % 2; ++i) EXPECT_EQ(items.next(), 0);
  }  // the destructor must not hang
}

TEST(Prefetcher, StopsWhileItemsAreMade) {
  std::atomic<int> begun = 0, ended = 0;
  {
    Prefetcher<int> items(0, 4, 4, [&](std::int64_t i) {
      ++begun;
      std::this_thread::sleep_for(5ms);
      ++ended;
      return static_cast<int>(i);
    });
    while (begun == 0) std::this_thread::yield();
  }
  EXPECT_EQ(begun, ended);  // none was abandoned half-way
}

TEST(Prefetcher, TakesSillySizesAsOne) {
  Prefetcher<int> items(0, 0, -3, [](std::int64_t i) { return static_cast<int>(i); });
  EXPECT_EQ(items.next(), 0);
  EXPECT_EQ(items.next(), 1);
}

TEST(Prefetcher, CountsTheTimeThatNextHasWaited) {
  Prefetcher<int> items(0, 1, 1, [](std::int64_t i) {
    std::this_thread::sleep_for(20ms);
    return static_cast<int>(i);
  });
  items.next();
  items.next();
  EXPECT_GT(items.waited().count(), 0.015);
  EXPECT_LT(items.waited().count(), 30);
}

TEST(BoundedQueue, KeepsTheOrder) {
  BoundedQueue<int> queue(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.push(i));
  EXPECT_EQ(queue.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(queue.pop(), i);
}

TEST(BoundedQueue, GivesWhatIsLeftAfterClose) {
  BoundedQueue<int> queue(2);
  queue.push(1);
  queue.close();
  EXPECT_FALSE(queue.push(2));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, TakesMoveOnlyItems) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  queue.push(std::make_unique<int>(5));
  EXPECT_EQ(**queue.pop(), 5);
}

TEST(BoundedQueue, HoldsAtLeastOneItem) {
  BoundedQueue<int> queue(0);
  EXPECT_TRUE(queue.push(1));
  EXPECT_EQ(queue.pop(), 1);
}

TEST(BoundedQueue, CloseWakesPushAndPop) {
  BoundedQueue<int> full(1), empty(1);
  full.push(1);
  std::thread pusher([&] { EXPECT_FALSE(full.push(2)); });
  std::thread popper([&] { EXPECT_EQ(empty.pop(), std::nullopt); });
  full.close();
  empty.close();
  pusher.join();
  popper.join();
}

TEST(BoundedQueue, DeliversEachItemOnceAmongThreads) {
  constexpr int kThreads = 3, kItems = 2000;
  BoundedQueue<int> queue(4);
  std::vector<std::atomic<int>> seen(kThreads * kItems);
  std::vector<std::thread> producers, consumers;
  for (int t = 0; t < kThreads; ++t) {
    producers.emplace_back([&, t] {
      for (int i = 0; i < kItems; ++i) queue.push(t * kItems + i);
    });
    consumers.emplace_back([&] {
      while (const auto item = queue.pop()) {
        EXPECT_LE(queue.size(), 4u);
        ++seen[static_cast<std::size_t>(*item)];
      }
    });
  }
  for (std::thread& producer : producers) producer.join();
  queue.close();
  for (std::thread& consumer : consumers) consumer.join();
  for (const auto& count : seen) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace tpudist
