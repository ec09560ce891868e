#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

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

// The number of the state in which the operation itself is fastest, without copies of its operands:
// the choice of a compiler that looks at one operation after the other.
std::size_t cheapest_state(const Program& program, const Choice& choice);

// The hidden cost model of layouts, a sum over operations: computing and moving an operation's
// tensor, padded to 8 x 128 tiles, and copying the tensor if a user wants another layout.
// Elementwise operations take the layout of their first operand, so a layout has effect until the
// next operation that chooses its own. The sum is stored as terms of one and of two configurable
// operations.
class LayoutCost {
 public:
  LayoutCost(const Program& program, std::span<const Choice> choices);

  // Run time in ns, without noise. codes: the state of each choice.
  double time(std::span<const std::uint8_t> codes) const;
  // The parts of the time that depend on single operations and on pairs. They show how much
  // variance is visible without neighbours.
  double single_part(std::span<const std::uint8_t> codes) const;
  double pair_part(std::span<const std::uint8_t> codes) const;

 private:
  struct Pair {
    std::int32_t a, b;
    std::array<float, kMaxStates * kMaxStates> time;  // [state of a, state of b]
  };
  friend class LayoutCostBuilder;
  double constant_ = 0;
  std::vector<double> single_;  // [nc, kMaxStates]
  std::vector<Pair> pairs_;
};

}  // namespace tpudist::synth
