#include "core/buffer_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/random.hpp"

namespace tpudist {
namespace {

TEST(BufferCache, HandsTheSameBlockOutAgain) {
  BufferCache cache;
  Buffer a = cache.take(5000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % 64, 0u);
  float* const first = a.data();
  a.release();
  EXPECT_EQ(cache.bytes_in_use(), 0u);
  EXPECT_EQ(cache.take(4990).data(), first);
  EXPECT_EQ(cache.take(0).data(), nullptr);
}

TEST(BufferCache, HoldsLittleMoreThanWasInUseAtOnce) {
  BufferCache cache;
  std::uint64_t peak = 0;
  CounterRng rng(1);
  for (int round = 0; round < 200; ++round) {
    const Buffer a = cache.take(1000 + rng.below(2'000'000)),
                 b = cache.take(1000 + rng.below(100'000));
    peak = std::max(peak, cache.bytes_in_use());
    EXPECT_LE(cache.bytes_held(), peak + peak / 2);
  }
}

TEST(BufferCache, ServesThreads) {
  BufferCache cache;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 300; ++i) {
        Buffer buffer = cache.take(2000 + 100 * (i % 7));
        std::fill_n(buffer.data(), 2000, static_cast<float>(t));
        for (int j = 0; j < 2000; ++j) ASSERT_EQ(buffer.data()[j], static_cast<float>(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.bytes_in_use(), 0u);
}

}  // namespace
}  // namespace tpudist
