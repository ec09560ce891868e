#include "data/convert/memory_budget.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace tpudist {
namespace {

TEST(MemoryBudget, IsNeverExceeded) {
  MemoryBudget budget(100);
  std::atomic<int> held{0}, most{0}, done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const int bytes = 10 + (t * 37 + i * 13) % 60;
        const MemoryBudget::Share share(budget, static_cast<std::uint64_t>(bytes));
        const int now = held += bytes;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        held -= bytes;
        ++done;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(done, 800);
  EXPECT_LE(most, 100);
}

TEST(MemoryBudget, WhoAsksForMoreThanThereIsGetsItAlone) {
  MemoryBudget budget(100);
  std::atomic<bool> got{false};
  std::thread waiting;
  {
    const MemoryBudget::Share small(budget, 1);
    waiting = std::thread([&] {
      const MemoryBudget::Share all(budget, 1000);
      got = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(got);
  }
  waiting.join();
  EXPECT_TRUE(got);
}

}  // namespace
}  // namespace tpudist
