#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "data/synth/choice.hpp"
#include "data/synth/program.hpp"

namespace tpudist::synth {

// The hidden cost model of layouts, as a sum over operations: computing and moving an operation's
// tensor with its padding to 8 x 128 tiles, and copying it where its layout is not what a user
// wants. Elementwise operations take over the layout of their first operand, so that a layout acts
// until the next operation that chooses its own. The sum is kept as terms of one and of two
// configurable operations.
class LayoutCost {
 public:
  LayoutCost(const Program& program, std::span<const Choice> choices);

  // Run time in ns, without noise. codes: state of each choice.
  double time(std::span<const std::uint8_t> codes) const;
  // The parts of it that depend on single operations and on pairs, for judging how much of the
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
