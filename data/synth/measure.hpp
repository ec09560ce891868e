#pragma once

#include <cstdint>
#include <vector>

#include "core/random.hpp"

namespace tpudist::synth {

// The noise of a graph's run times (SD of the logarithm), log-uniform between 0.05 and 0.4 %.
double noise_level(std::uint64_t key);

// Measures `time` (ns) once more, with log-normal noise. At least 1.
std::int64_t measure(double time, double level, CounterRng& rng);

// Corrupts two stretches of a graph's runs, together a `share` of them: another state of the
// machine, and an unsteady one.
void corrupt(std::vector<std::int64_t>& runtime, double share, std::uint64_t key);

}  // namespace tpudist::synth
