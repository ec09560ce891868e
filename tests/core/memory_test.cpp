#include "core/memory.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace tpudist {
namespace {

TEST(Memory, SeesAnAllocationComeAndItsPeakStay) {
  constexpr std::size_t kSize = std::size_t{256} << 20;
  const std::uint64_t before = current_resident_bytes();
  EXPECT_GT(before, 0u);
  EXPECT_GE(peak_resident_bytes(), before);
  {
    const std::vector<char> block(kSize, 1);
    EXPECT_GE(current_resident_bytes(), before + kSize / 2 + static_cast<std::size_t>(block[7]));
  }
  EXPECT_GE(peak_resident_bytes(), before + kSize / 2);
}

}  // namespace
}  // namespace tpudist
