#include "data/synth/cost.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

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

// A rough TPU. Within one graph, run time is mostly a sum over single operations, as for the real
// AlexNet. But the cost of a state depends on the neighbours' sizes and layouts, so ranking an
// unseen graph needs a model that uses neighbours.
constexpr double kBytesPerNs = 400;
constexpr double kFlopsPerNs = 40000;
// Share of an elementwise operation's traffic that is not fused away.
constexpr double kFusedTraffic = 0.08;
// Share of an operation's compute time that suffers from padding.
constexpr double kComputePadding = 0.12;
// Traffic of a copy, in times the tensor: to other lanes, and to other sublanes only.
constexpr double kTranspose = 1.0, kRetile = 0.4;
// Share of a copy between two chosen layouts that is not fused into the operations at its ends. A
// copy to or from a fixed layout is not fused.
constexpr double kUnfused = 0.5;
// A product's loss for each operand whose summed dimension is not along the lanes, as a share of
// its compute time. A dot that takes its operands in any layout loses less.
constexpr double kAcross = 0.06, kAnyLayout = 0.09;

// Where a tensor's layout is decided.
struct Source {
  // A flexible tensor is made in whatever layout its user wants.
  enum Kind { flexible, fixed, choice } kind = fixed;
  // Number of the choice, if the layout is one.
  std::int32_t number = -1;
};

bool passes_layout(std::uint8_t code) {
  switch (code) {
    case opcode::parameter:
    case opcode::get_tuple_element:
    case opcode::reduce:
    case opcode::transpose:
    case opcode::tuple:
      return false;
    default:
      return true;
  }
}

bool is_flexible(std::uint8_t code) {
  return code == opcode::constant || code == opcode::broadcast || code == opcode::iota;
}

// Elements with padding over elements; tensors too small for tiles are packed otherwise.
double padding(const Op& op, Layout layout) {
  return std::min(4.0,
                  padded_elements(op.shape, layout) / static_cast<double>(op.shape.elements()));
}

double bytes(const Op& op, Layout layout) {
  return padding(op, layout) * static_cast<double>(op.shape.elements()) * bytes_of(op.type);
}

double copy_time(const Op& op, Layout have, Layout want) {
  if (want.minor < 0 || have == want || op.shape.rank < 2) return 0;
  const double factor = have.minor != want.minor ? kTranspose : kRetile;
  return factor * static_cast<double>(op.shape.elements()) * bytes_of(op.type) / kBytesPerNs;
}

// Time of a configurable operation without copies.
double own_time(const Op& op, const Choice::State& state) {
  double loss = kComputePadding * (padding(op, state.output) - 1);
  if (op.code == opcode::dot && state.input.minor < 0) {
    loss += kAnyLayout;
  } else if (op.flops > 0) {
    loss += kAcross *
            ((state.input.minor != op.contracted[0]) + (state.kernel.minor != op.contracted[1]));
  }
  return op.flops / kFlopsPerNs * (1 + loss) +
         kFusedTraffic * bytes(op, state.output) / kBytesPerNs;
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

std::size_t cheapest_state(const Program& program, const Choice& choice) {
  const Op& op = program[choice.op];
  const auto best = std::ranges::min_element(
      choice.states, {}, [&](const Choice::State& state) { return own_time(op, state); });
  return static_cast<std::size_t>(best - choice.states.begin());
}

class LayoutCostBuilder {
 public:
  LayoutCostBuilder(const Program& program, std::span<const Choice> choices, LayoutCost& cost)
      : program_(program), choices_(choices), cost_(cost), sources_(program.ops.size()) {
    cost_.single_.assign(choices.size() * kMaxStates, 0.0);
    std::int32_t next = 0;
    for (std::int32_t i = 0; i < program.nodes(); ++i) {
      if (program[i].configurable()) {
        add_choice(i, next++);
      } else {
        add_other(i);
      }
    }
    for (const auto& [key, pair] : pairs_) cost_.pairs_.push_back(pair);
  }

 private:
  using Wanted = std::function<Layout(const Choice::State&)>;
  const Source& source(std::int32_t op) const { return sources_[op]; }
  const Choice& choice(std::int32_t number) const { return choices_[number]; }
  double& single(std::int32_t number, std::size_t state) {
    return cost_.single_[static_cast<std::size_t>(number) * kMaxStates + state];
  }

  // Adds f(layout of `op`) to the term of the operation that decides that layout.
  void add_term(std::int32_t op, const std::function<double(Layout)>& f) {
    const Source from = source(op);
    if (from.kind != Source::choice) {
      cost_.constant_ += f(default_layout(program_[op].shape));
      return;
    }
    const Choice& by = choice(from.number);
    for (std::size_t s = 0; s < by.states.size(); ++s) {
      single(from.number, s) += f(by.states[s].output);
    }
  }

  // Adds the copies of `op` for a user whose required layout depends on choice `user`.
  void add_copies(std::int32_t op, std::int32_t user, const Wanted& wanted) {
    const Source from = source(op);
    if (from.kind == Source::flexible) return;
    const auto& wishes = choice(user).states;
    for (std::size_t w = 0; w < wishes.size(); ++w) {
      const Layout want = wanted(wishes[w]);
      if (from.kind == Source::fixed || from.number == user) {
        const Layout have =
            from.kind == Source::fixed ? default_layout(program_[op].shape) : wishes[w].output;
        single(user, w) += copy_time(program_[op], have, want);
        continue;
      }
      const auto& haves = choice(from.number).states;
      for (std::size_t h = 0; h < haves.size(); ++h) {
        add_pair(from.number, h, user, w,
                 kUnfused * copy_time(program_[op], haves[h].output, want));
      }
    }
  }

  void add_pair(std::int32_t a, std::size_t state_a, std::int32_t b, std::size_t state_b,
                double time) {
    if (a > b) {
      std::swap(a, b);
      std::swap(state_a, state_b);
    }
    const auto [entry, is_new] = pairs_.try_emplace({a, b});
    if (is_new) entry->second = {a, b, {}};
    entry->second.time[state_a * kMaxStates + state_b] += static_cast<float>(time);
  }

  void add_choice(std::int32_t i, std::int32_t number) {
    sources_[i] = {Source::choice, number};
    const Op& op = program_[i];
    const auto& states = choice(number).states;
    for (std::size_t s = 0; s < states.size(); ++s) single(number, s) += own_time(op, states[s]);
    add_copies(op.operands[0], number, [](const Choice::State& state) { return state.input; });
    if (op.operands.size() > 1) {
      add_copies(op.operands[1], number, [](const Choice::State& state) { return state.kernel; });
    }
  }

  void add_other(std::int32_t i) {
    const Op& op = program_[i];
    Source& mine = sources_[i];
    if (is_flexible(op.code)) {
      mine.kind = Source::flexible;
      return;
    }
    std::int32_t leader = -1;
    if (passes_layout(op.code)) {
      for (const std::int32_t operand : op.operands) {
        if (program_[operand].shape.rank == op.shape.rank &&
            source(operand).kind != Source::flexible) {
          leader = operand;
          break;
        }
      }
      if (leader >= 0) mine = source(leader);
    }
    if (op.code == opcode::reduce) {  // reads its operand in any layout
      add_term(op.operands[0], [&](Layout layout) {
        return kFusedTraffic * bytes(program_[op.operands[0]], layout) / kBytesPerNs;
      });
      return;
    }
    add_term(i, [&](Layout layout) { return kFusedTraffic * bytes(op, layout) / kBytesPerNs; });
    for (const std::int32_t operand : op.operands) {
      if (operand != leader && program_[operand].shape.rank >= 2) add_operand(operand, mine);
    }
  }

  // Another operand of an operation whose layout is decided by `wanted`. Users with the same
  // decider share a copy.
  void add_operand(std::int32_t operand, const Source& wanted) {
    if (!copied_.emplace(operand, wanted.kind, wanted.number).second) return;
    if (wanted.kind == Source::choice) {
      add_copies(operand, wanted.number, [](const Choice::State& state) { return state.output; });
    } else {
      const Layout want = default_layout(program_[operand].shape);
      add_term(operand, [&](Layout have) { return copy_time(program_[operand], have, want); });
    }
  }

  const Program& program_;
  std::span<const Choice> choices_;
  LayoutCost& cost_;
  std::vector<Source> sources_;
  std::set<std::tuple<std::int32_t, int, std::int32_t>> copied_;
  std::map<std::pair<std::int32_t, std::int32_t>, LayoutCost::Pair> pairs_;
};

LayoutCost::LayoutCost(const Program& program, std::span<const Choice> choices) {
  LayoutCostBuilder(program, choices, *this);
}

double LayoutCost::single_part(std::span<const std::uint8_t> codes) const {
  double sum = 0;
  for (std::size_t j = 0; j < codes.size(); ++j) sum += single_[j * kMaxStates + codes[j]];
  return sum;
}

double LayoutCost::pair_part(std::span<const std::uint8_t> codes) const {
  double sum = 0;
  for (const Pair& pair : pairs_) {
    sum += pair.time[codes[pair.a] * kMaxStates + codes[pair.b]];
  }
  return sum;
}

double LayoutCost::time(std::span<const std::uint8_t> codes) const {
  return constant_ + single_part(codes) + pair_part(codes);
}

}  // namespace tpudist::synth
