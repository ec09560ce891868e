#include "core/process.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace tpudist {
namespace {

TEST(Memory, KeepsThePeakOfWhatIsFreedAgain) {
  const std::uint64_t before = peak_resident_bytes();
  EXPECT_GT(before, 0u);
  std::uint64_t during = 0;
  {
    const std::vector<char> block(static_cast<std::size_t>(before) + (std::size_t{64} << 20), 1);
    during = peak_resident_bytes() + static_cast<std::size_t>(block[7]) - 1;
  }
  EXPECT_GE(during, before + (std::uint64_t{32} << 20));
  // The kernel counts in batches for each thread and processor, so that the peak is a little vague.
  EXPECT_GE(peak_resident_bytes() + (std::uint64_t{1} << 20), during);
}

}  // namespace
}  // namespace tpudist
