#include "core/buffer_cache.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "core/array.hpp"
#include "core/random.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;

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

TEST(Array, TakesAVectorOverAndSharesItWithCopies) {
  std::vector<int> values{1, 2, 3};
  const int* place = values.data();
  const Array<int> array = std::move(values);
  const Array<int> copy = array;
  EXPECT_EQ(array.data(), place);
  EXPECT_EQ(copy.data(), place);
  EXPECT_THAT(copy, ElementsAre(1, 2, 3));
  EXPECT_EQ(array.bytes(), 3 * sizeof(int));
  EXPECT_EQ(array.front() + array[1] + array.back(), 6);
  const std::span<const int> view = array;
  EXPECT_EQ(std::accumulate(view.begin(), view.end(), 0), 6);
}

TEST(Array, IsEmptyByDefault) {
  const Array<float> none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.begin(), none.end());
  EXPECT_EQ(none, Array<float>(std::vector<float>{}));
}

TEST(Array, ComparesElements) {
  const Array<int> a{1, 2}, b{1, 2}, c{1, 3};
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a == c);
  EXPECT_EQ(a, (std::vector<int>{1, 2}));
}

TEST(Array, KeepsTheOwnerOfElementsThatLieElsewhere) {
  auto owner = std::make_shared<std::vector<int>>(5, 7);
  Array<int> array(std::span<const int>(*owner).subspan(1, 2), owner);
  const std::weak_ptr<std::vector<int>> watched = owner;
  owner.reset();
  EXPECT_THAT(array, ElementsAre(7, 7));
  array = {};
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace tpudist
