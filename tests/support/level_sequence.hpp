#pragma once

#include <cstdint>
#include <vector>

namespace tpudist::test {

// [n] whole numbers below `levels`: the generator of the scripts in tests/golden.
inline std::vector<double> level_sequence(int n, std::uint64_t seed, std::uint64_t levels) {
  std::vector<double> values;
  for (std::uint64_t state = seed; n > 0; --n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values.push_back(static_cast<double>((state >> 33) % levels));
  }
  return values;
}

}  // namespace tpudist::test
