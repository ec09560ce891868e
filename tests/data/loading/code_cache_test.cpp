#include "data/loading/open_graph.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/random.hpp"

namespace tpudist {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kChunkBytes = 100;

// A chunk that tells which one it is.
ConfigChunk chunk_of(int graph, std::int64_t chunk) {
  std::vector<std::uint8_t> codes(kChunkBytes, static_cast<std::uint8_t>(chunk));
  codes[0] = static_cast<std::uint8_t>(graph);
  return {.codes = std::move(codes), .features = {}};
}

bool is_chunk(const CodeCache::Handle& handle, int graph, std::int64_t chunk) {
  const auto& codes = std::get<Array<std::uint8_t>>(handle->codes);
  return codes.size() == kChunkBytes && codes[0] == graph && codes[1] == chunk;
}

TEST(ConfigChunk, CountsItsBytes) {
  EXPECT_EQ(chunk_of(1, 2).bytes(), kChunkBytes);
  ConfigChunk wide{.codes = std::vector<std::uint16_t>(50), .features = {}};
  EXPECT_EQ(wide.bytes(), 100u);
  ConfigChunk features{.codes = {}, .features = std::vector<std::byte>(72)};
  EXPECT_EQ(features.bytes(), 72u);
}

TEST(CodeCache, ReadsAChunkOnce) {
  int calls = 0;
  CodeCache cache(1000, [&](int graph, std::int64_t chunk) {
    ++calls;
    return chunk_of(graph, chunk);
  });
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(is_chunk(cache.get(1, 2), 1, 2));
    EXPECT_TRUE(is_chunk(cache.get(2, 1), 2, 1));
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(cache.statistics().loads, 2u);
  EXPECT_EQ(cache.statistics().hits, 4u);
  EXPECT_EQ(cache.statistics().bytes, 2 * kChunkBytes);
  EXPECT_EQ(cache.statistics().chunks, 2u);
}

TEST(CodeCache, DropsTheChunkThatWasNotUsedForLongest) {
  std::vector<std::int64_t> loads;
  CodeCache cache(3 * kChunkBytes, [&](int graph, std::int64_t chunk) {
    loads.push_back(chunk);
    return chunk_of(graph, chunk);
  });
  for (const int chunk : {1, 2, 3, 1, 4}) cache.get(0, chunk);  // 4 takes the place of 2
  for (const int chunk : {1, 3, 4}) cache.get(0, chunk);
  EXPECT_EQ(loads, (std::vector<std::int64_t>{1, 2, 3, 4}));
  cache.get(0, 2);
  EXPECT_EQ(loads.back(), 2);
  EXPECT_EQ(cache.statistics().bytes, 3 * kChunkBytes);
}

TEST(CodeCache, KeepsNothingThatIsLargerThanItself) {
  CodeCache cache(kChunkBytes - 1, chunk_of);
  const auto handle = cache.get(0, 7);
  EXPECT_TRUE(is_chunk(handle, 0, 7));
  EXPECT_EQ(cache.statistics().bytes, 0u);
  cache.get(0, 7);
  EXPECT_EQ(cache.statistics().loads, 2u);
}

TEST(CodeCache, LeavesAChunkThatIsInUseAlone) {
  CodeCache cache(kChunkBytes, chunk_of);
  const auto held = cache.get(0, 1);
  for (int i = 2; i < 10; ++i) cache.get(0, i);
  EXPECT_TRUE(is_chunk(held, 0, 1));
}

TEST(CodeCache, LetsThreadsShareOneRead) {
  constexpr int kThreads = 8;
  std::atomic<int> calls = 0, arrived = 0, right = 0;
  CodeCache cache(1000, [&](int graph, std::int64_t chunk) {
    ++calls;
    while (arrived < kThreads) std::this_thread::yield();
    std::this_thread::sleep_for(10ms);  // the others are at the door by now
    return chunk_of(graph, chunk);
  });
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      ++arrived;
      right += is_chunk(cache.get(3, 4), 3, 4);
    });
  }
  threads.clear();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(right, kThreads);
}

TEST(CodeCache, ReadsDifferentChunksSideBySide) {
  std::atomic<int> inside = 0;
  CodeCache cache(1000, [&](int graph, std::int64_t chunk) {
    ++inside;
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (inside < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_EQ(inside, 2);  // would not be reached by one after another
    return chunk_of(graph, chunk);
  });
  std::jthread other([&] { cache.get(0, 1); });
  cache.get(0, 2);
}

TEST(CodeCache, PassesAnErrorToAllWhoWaitAndTriesAgain) {
  constexpr int kThreads = 4;
  std::atomic<int> calls = 0, arrived = 0, errors = 0;
  CodeCache cache(1000, [&](int graph, std::int64_t chunk) {
    if (++calls > kThreads) return chunk_of(graph, chunk);
    while (arrived < kThreads) std::this_thread::yield();
    throw std::runtime_error("damaged");
  });
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      ++arrived;
      try {
        cache.get(0, 0);
      } catch (const std::runtime_error&) {
        ++errors;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(errors, kThreads);
  calls = kThreads;
  EXPECT_TRUE(is_chunk(cache.get(0, 0), 0, 0));
}

TEST(CodeCache, StaysWithinItsBoundsUnderManyThreads) {
  CodeCache cache(5 * kChunkBytes, chunk_of);
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      CounterRng random(i);
      for (int n = 0; n < 2000; ++n) {
        const int graph = static_cast<int>(random.below(3));
        const auto chunk = static_cast<std::int64_t>(random.below(6));
        wrong += !is_chunk(cache.get(graph, chunk), graph, chunk);
        wrong += cache.statistics().bytes > 5 * kChunkBytes;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cache.statistics().hits + cache.statistics().loads, 8000u);
}

}  // namespace
}  // namespace tpudist
