#pragma once

#include <cstdint>
#include <vector>

#include "core/random.hpp"

namespace tpudist::synth {

// Standard deviation of the logarithm of a graph's run times, log-uniform between 0.05 and 0.4 %.
double noise_level(std::uint64_t key);

// Measures `time` (ns) once more, with log-normal noise. At least 1.
std::int64_t measure(double time, double level, CounterRng& rng);

// Corrupts two stretches of a graph's runs, `share` of them together: another state of the machine,
// and unsteady.
void corrupt(std::vector<std::int64_t>& runtime, double share, std::uint64_t key);

}  // namespace tpudist::synth
