#pragma once

#include <cstdint>
#include <vector>

#include "data/synth/program.hpp"

namespace tpudist::synth {

// A parameter that is trained, and the operation that makes its gradient.
struct Weight {
  std::int32_t value, gradient;
};

// Appends the backward pass of `y`: gradients of all operations that depend on a weight, in reverse
// order, added up if an operation has several users. `inputs`: parameters that are not trained.
std::vector<Weight> add_gradients(Program& program, std::int32_t y,
                                  const std::vector<std::int32_t>& inputs);

}  // namespace tpudist::synth
