#pragma once

#include <cstdint>

#include "tests/data/npz/npz_fixture.hpp"
#include "tests/support/noisy_graph.hpp"

namespace tpudist::test {

// The measurements of `graph` as a file of a layout collection. Different configurations have
// different features.
inline NpzFixture measured(const NoisyGraph& graph) {
  NpzFixture f = NpzFixture::layout();
  f.c = static_cast<std::int64_t>(graph.times.size());
  f.features.clear();
  f.runtime.assign(graph.times.begin(), graph.times.end());
  for (std::int32_t config : graph.config) {
    for (int k = 0; k < 2 * 18; ++k, config /= 7)
      f.features.push_back(static_cast<float>(config % 7 - 1));
  }
  return f;
}

}  // namespace tpudist::test
