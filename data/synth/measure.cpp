#include "data/synth/measure.hpp"

#include <algorithm>
#include <cmath>

namespace tpudist::synth {
namespace {

enum MeasureStream : std::uint64_t { kLevel = 4, kCorruption };

}  // namespace

double noise_level(std::uint64_t key) {
  CounterRng rng(mix_key({key, kLevel}));
  return 0.0005 * std::pow(8.0, rng.uniform());
}

std::int64_t measure(double time, double level, CounterRng& rng) {
  return std::max<std::int64_t>(1, std::llround(time * std::exp(level * rng.normal())));
}

void corrupt(std::vector<std::int64_t>& runtime, double share, std::uint64_t key) {
  CounterRng rng(mix_key({key, kCorruption}));
  const auto length = static_cast<std::size_t>(share / 2 * static_cast<double>(runtime.size()));
  for (int stretch = 0; stretch < 2 && length > 0; ++stretch) {
    const double factor = std::exp(rng.uniform(0.3, 0.9));
    const std::size_t begin = rng.below(runtime.size() - length + 1);
    for (std::size_t i = begin; i < begin + length; ++i) {
      runtime[i] = measure(factor * static_cast<double>(runtime[i]), 0.2, rng);
    }
  }
}

}  // namespace tpudist::synth
