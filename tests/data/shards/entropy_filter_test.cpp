#include "data/shards/entropy_filter.hpp"

#include <gmock/gmock.h>

#include <cstdint>

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Those of tests/golden/entropy_filter.py.
std::vector<std::int64_t> times(std::size_t count, std::size_t first, std::size_t last) {
  std::uint64_t state = 7;
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto noise = static_cast<std::int64_t>(state >> 44);
    result.push_back(1'000'000 + (first <= i && i < last ? 500'000 + noise / 1000 : noise));
  }
  return result;
}

// The blocks of 100 measurements that are kept; each must be kept whole or not at all.
std::vector<std::size_t> kept_blocks(const std::vector<std::int64_t>& times, double threshold) {
  const std::vector<bool> kept = kept_by_entropy(times, threshold);
  EXPECT_EQ(kept.size(), times.size());
  std::vector<std::size_t> blocks;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i], kept[i / 100 * 100]);
    if (kept[i] && i % 100 == 0) blocks.push_back(i / 100);
  }
  return blocks;
}

TEST(EntropyFilter, KeepsTheBlocksThatScipyKeeps) {
  EXPECT_THAT(kept_blocks(times(2050, 600, 1300), 0.3), ElementsAre(2, 3, 4, 15, 16, 17, 18, 19));
  EXPECT_THAT(kept_blocks(times(2050, 600, 1300), 0.2),
              ElementsAre(0, 1, 2, 3, 4, 5, 14, 15, 16, 17, 18, 19));
  EXPECT_THAT(kept_blocks(times(2050, 0, 0), 0.3),
              ElementsAre(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19));
}

TEST(EntropyFilter, TakesAwayGraphsOfWhichLittleIsGood) {
  EXPECT_THAT(kept_blocks(times(1000, 150, 1000), 0.3), IsEmpty());
  EXPECT_THAT(kept_blocks(times(199, 0, 0), 0.001), IsEmpty()) << "one block has no neighbour";
  EXPECT_THAT(kept_blocks(std::vector<std::int64_t>(1000, 5), 0.3), IsEmpty()) << "all equal";
  EXPECT_TRUE(kept_by_entropy({}, 0.3).empty());
}

}  // namespace
}  // namespace tpudist
