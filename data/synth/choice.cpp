#include "data/synth/choice.hpp"

#include <algorithm>

namespace tpudist::synth {
namespace {

using Order = std::vector<std::int8_t>;  // minor to major, possibly just the two minor dimensions

Layout layout_of(const Order& order) {
  return {order.empty() ? std::int8_t{-1} : order[0],
          order.size() < 2 ? std::int8_t{-1} : order[1]};
}

Choice::State make_state(const Order& output, const Order& input, const Order& kernel) {
  Choice::State state;
  state.features.fill(-1);
  std::ranges::copy(output, state.features.begin());
  std::ranges::copy(input, state.features.begin() + 6);
  std::ranges::copy(kernel, state.features.begin() + 12);
  state.output = layout_of(output);
  state.input = layout_of(input);
  state.kernel = layout_of(kernel);
  return state;
}

// rank-1, ..., 0, with the two minor ones swapped if `swapped`.
Order descending(int rank, bool swapped = false) {
  Order order;
  for (int dim = rank - 1; dim >= 0; --dim) order.push_back(static_cast<std::int8_t>(dim));
  if (swapped && rank > 1) std::swap(order[0], order[1]);
  return order;
}

// Batch or features minor: the two dimensions that a convolution puts into lanes and sublanes.
Order two(int minor, int second, bool swapped) {
  Order order{static_cast<std::int8_t>(minor), static_cast<std::int8_t>(second)};
  if (swapped) std::swap(order[0], order[1]);
  return order;
}

Choice::State convolution_state(const Op& op, bool output, bool input, bool kernel) {
  const int last = op.shape.rank - 1;
  const bool kernel_gradient = op.convolution == ConvolutionKind::kernel_gradient;
  return make_state(two(last, kernel_gradient ? last - 1 : 0, output), two(last, 0, input),
                    two(last, kernel_gradient ? 0 : last - 1, kernel));
}

void add_reshape_states(const Shape& output, const Shape& input, Choice& choice) {
  if (output.rank < 2 && input.rank < 2) {
    choice.states = {make_state({}, {}, {}), make_state({}, {0}, {})};
    return;
  }
  const auto rotated = [](int rank) {  // the first dimension minor, e.g. 0 3 2 1
    Order order = descending(rank);
    std::rotate(order.begin(), order.end() - 1, order.end());
    return order;
  };
  choice.states = {make_state(descending(output.rank), descending(input.rank), {}),
                   make_state(rotated(output.rank), rotated(input.rank), {})};
}

}  // namespace

Choice make_choice(const Program& program, std::int32_t number) {
  const Op& op = program[number];
  Choice choice;
  choice.op = number;
  if (op.code == opcode::reshape) {
    add_reshape_states(op.shape, program[op.operands[0]].shape, choice);
    return choice;
  }
  for (int bits = 0; bits < 8; ++bits) {
    const bool output = bits & 4, input = bits & 2, kernel = bits & 1;
    if (op.code == opcode::convolution) {
      choice.states.push_back(convolution_state(op, output, input, kernel));
    } else {
      const int rank = op.shape.rank;
      choice.states.push_back(
          make_state(descending(rank, output), descending(rank, input), descending(rank, kernel)));
    }
  }
  if (op.code == opcode::dot) {
    choice.states.push_back(make_state(descending(op.shape.rank), {}, {}));
  }
  return choice;
}

}  // namespace tpudist::synth
