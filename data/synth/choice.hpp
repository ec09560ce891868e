#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/schema/collection.hpp"
#include "data/synth/program.hpp"

namespace tpudist::synth {

inline constexpr int kMaxStates = 9;

// The states of one configurable operation. A state is a row of node_config_feat with its meaning
// for the layouts of output, input and kernel.
struct Choice {
  struct State {
    // 6 output, 6 input, 6 kernel; -1 = none.
    std::array<std::int8_t, kLayoutConfigFeatures> features;
    Layout output, input, kernel;
  };
  std::int32_t op = 0;  // in the program
  std::vector<State> states;
};

// Convolution: 8 states; dot: 9, one of which takes its operands in any layout; reshape: 2.
Choice make_choice(const Program& program, std::int32_t op);

}  // namespace tpudist::synth
