#pragma once

#include "data/synth/models.hpp"
#include "data/synth/program.hpp"
#include "data/synth/tape.hpp"

namespace tpudist::synth {

// Appends chains of elementwise operations on the tape's weights and their gradients, and the root
// tuple of their results. The program then has exactly spec.nodes operations and spec.edges
// operands (about 1.65 per operation if 0). Throws ConfigError where that is impossible.
void add_optimizer(const ModelSpec& spec, Tape& tape, Program& program);

}  // namespace tpudist::synth
