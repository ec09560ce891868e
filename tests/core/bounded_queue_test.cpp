#include "core/bounded_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace tpudist {
namespace {

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
