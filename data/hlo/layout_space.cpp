#include "data/hlo/layout_space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "data/hlo/hlo_features.hpp"

namespace tpudist {
namespace {

using Layout = std::vector<std::int64_t>;

Layout descending(std::size_t rank) {
  Layout layout(rank);
  std::iota(layout.rbegin(), layout.rend(), 0);
  return layout;
}

// All choices of one layout for each tensor.
std::vector<LayoutState> all_choices(const std::vector<std::vector<Layout>>& tensors) {
  std::vector<std::vector<Layout>> chosen{{}};
  for (const auto& layouts : tensors) {
    std::vector<std::vector<Layout>> longer;
    for (const auto& begin : chosen) {
      for (const Layout& layout : layouts) {
        longer.push_back(begin);
        longer.back().push_back(layout);
      }
    }
    chosen = std::move(longer);
  }
  std::vector<LayoutState> states;
  for (const auto& own : chosen) states.push_back(state_of(own));
  return states;
}

std::vector<Layout> both_orders(std::int64_t a, std::int64_t b) {
  return {{std::max(a, b), std::min(a, b)}, {std::min(a, b), std::max(a, b)}};
}

// The two minor dimensions of each tensor are batch and feature, in both orders.
std::vector<LayoutState> convolution_states(const HloConvolution& of) {
  return all_choices({both_orders(of.output_batch, of.output_feature),
                      both_orders(of.input_batch, of.input_feature),
                      both_orders(of.kernel_input_feature, of.kernel_output_feature)});
}

// Both orders of the two minor dimensions of output and operands, and the output's default alone.
std::vector<LayoutState> dot_states(std::span<const std::size_t> ranks) {
  std::vector<std::vector<Layout>> tensors;
  for (const std::size_t rank : ranks) {
    tensors.push_back({descending(rank)});
    if (rank < 2) continue;
    tensors.back().push_back(descending(rank));
    std::swap(tensors.back().back()[0], tensors.back().back()[1]);
  }
  std::vector<LayoutState> states = all_choices(tensors);
  states.push_back(state_of({descending(ranks[0])}));
  return states;
}

// Dimensions of output and input that hold the same elements. Size 1 belongs to no factor.
struct Factor {
  Layout output, input;  // ascending
};

// Splits two shapes of equally many elements into their smallest common factors. Empty if there are
// none, or a dimension is 0 or unbounded.
std::vector<Factor> common_factors(const Layout& output, const Layout& input) {
  std::vector<Factor> factors;
  std::size_t o = 0, i = 0;
  const auto skip_ones = [](const Layout& shape, std::size_t& at) {
    while (at < shape.size() && shape[at] == 1) ++at;
  };
  for (skip_ones(output, o), skip_ones(input, i); o < output.size() && i < input.size();
       skip_ones(output, o), skip_ones(input, i)) {
    Factor& own = factors.emplace_back();
    if (output[o] < 1 || input[i] < 1) return {};
    std::uint64_t left = static_cast<std::uint64_t>(output[o]);
    std::uint64_t right = static_cast<std::uint64_t>(input[i]);
    own.output.push_back(static_cast<std::int64_t>(o++));
    own.input.push_back(static_cast<std::int64_t>(i++));
    while (left != right) {
      Layout& list = left < right ? own.output : own.input;
      const Layout& shape = left < right ? output : input;
      std::size_t& at = left < right ? o : i;
      if (at == shape.size() || shape[at] < 1) return {};
      if (shape[at] != 1) {
        std::uint64_t& product = left < right ? left : right;
        if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(shape[at]), &product))
          return {};
        list.push_back(static_cast<std::int64_t>(at));
      }
      ++at;
    }
  }
  return o == output.size() && i == input.size() ? factors : std::vector<Factor>();
}

// Pairs of output and input layouts that make the reshape a bitcast: factors in any order,
// dimensions within them descending, dimensions of size 1 major.
std::vector<LayoutState> reshape_states(const Layout& output, const Layout& input) {
  std::vector<LayoutState> states{state_of({descending(output.size()), descending(input.size())})};
  if (output.empty() || input.empty()) states.push_back(kFreeState);
  const std::vector<Factor> factors = common_factors(output, input);
  if (factors.size() > kDimensions) return states;
  const auto add_ones = [](Layout& layout, const Layout& shape) {
    for (std::size_t d = shape.size(); d-- > 0;)
      if (shape[d] == 1) layout.push_back(static_cast<std::int64_t>(d));
  };
  std::vector<std::size_t> order(factors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.empty()) return states;
  do {
    Layout out, in;
    for (const std::size_t f : order) {
      out.insert(out.end(), factors[f].output.rbegin(), factors[f].output.rend());
      in.insert(in.end(), factors[f].input.rbegin(), factors[f].input.rend());
    }
    add_ones(out, output);
    add_ones(in, input);
    states.push_back(state_of({out, in}));
  } while (std::ranges::next_permutation(order).found);
  return states;
}

using Layout = std::vector<std::int64_t>;
using Instructions = std::unordered_map<std::int64_t, const HloInstruction*>;  // by id

constexpr std::size_t kMostStates = 65535;  // of a node

Instructions by_id(const HloModule& module) {
  Instructions found;
  for (const HloComputation& computation : module.computations) {
    for (const HloInstruction& own : computation.instructions) found.emplace(own.id, &own);
  }
  return found;
}

const std::vector<std::int64_t>& dimensions_of(const HloShape* shape) {
  return shape->dimensions;
}

// The shapes of output and operands, at most three.
std::vector<const HloShape*> shapes_of(const HloInstruction& own,
                                       const Instructions& instructions) {
  std::vector<const HloShape*> shapes{&own.shape};
  for (const std::int64_t id : own.operands) {
    if (const auto found = instructions.find(id); found != instructions.end() && shapes.size() < 3)
      shapes.push_back(&found->second->shape);
  }
  return shapes;
}

// Whether two instructions are parts of one front-end operation, so that the tensor between them
// has no name there. Equal opcodes do not count: like operations in a row often share a name.
bool are_parts(const HloInstruction& a, const HloInstruction& b) {
  return !a.op_name.empty() && a.op_name == b.op_name && a.opcode != b.opcode;
}

// Ids of instructions whose result is a tensor inside a front-end operation.
std::set<std::int64_t> inner_tensors(const Instructions& instructions) {
  std::set<std::int64_t> inner;
  for (const auto& [id, user] : instructions) {
    for (const std::int64_t operand : user->operands) {
      const auto found = instructions.find(operand);
      if (found != instructions.end() && are_parts(*found->second, *user)) inner.insert(operand);
    }
  }
  return inner;
}

// The dimensions of a layout that the state orders too, in the layout's order: a state of a
// convolution orders only two.
Layout ordered_as(const Layout& minor_to_major, const LayoutState& like, int tensor) {
  const std::vector<int> dimensions = tensor_layout(like, tensor);
  Layout ordered;
  for (const std::int64_t d : minor_to_major) {
    if (std::ranges::find(dimensions, d) != dimensions.end()) ordered.push_back(d);
  }
  return ordered;
}

// Adds the computation to a name that several instructions have.
void tell_apart(LayoutSpace& space, const std::vector<std::string>& computations) {
  std::map<std::string, int> count;
  for (const ConfigurableNode& node : space.nodes) ++count[node.name];
  for (std::size_t i = 0; i < space.nodes.size(); ++i) {
    if (count[space.nodes[i].name] > 1)
      space.nodes[i].name = computations[i] + "/" + space.nodes[i].name;
  }
}

}  // namespace

LayoutState state_of(const std::vector<Layout>& tensors) {
  LayoutState state = kFreeState;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    for (std::size_t d = 0; d < std::min<std::size_t>(tensors[t].size(), kDimensions); ++d)
      state[t * kDimensions + d] = static_cast<std::int8_t>(tensors[t][d]);
  }
  return state;
}

std::optional<std::vector<LayoutState>> layout_states(const HloInstruction& own,
                                                      std::span<const HloShape* const> shapes) {
  if (own.opcode == "convolution") return convolution_states(own.convolution);
  if (own.opcode == "dot" && shapes.size() == 3)
    return dot_states(std::array{shapes[0]->dimensions.size(), shapes[1]->dimensions.size(),
                                 shapes[2]->dimensions.size()});
  if (own.opcode == "reshape" && shapes.size() == 2)
    return reshape_states(shapes[0]->dimensions, shapes[1]->dimensions);
  return std::nullopt;
}

std::vector<int> tensor_layout(const LayoutState& state, int tensor) {
  std::vector<int> dimensions;
  for (int d = 0; d < kDimensions; ++d) {
    const int value = state[tensor * kDimensions + d];
    if (value >= 0) dimensions.push_back(value);
  }
  return dimensions;
}

std::string layout_text(std::string_view opcode, const LayoutState& state) {
  const std::array<std::string_view, kTensors> names =
      opcode == "dot" ? std::array<std::string_view, kTensors>{"out", "lhs", "rhs"}
                      : std::array<std::string_view, kTensors>{"out", "in", "kernel"};
  std::string text;
  for (int t = 0; t < kTensors; ++t) {
    const std::vector<int> dimensions = tensor_layout(state, t);
    if (dimensions.empty()) continue;
    text +=
        fmt::format("{}{} {{{}}}", text.empty() ? "" : " ", names[t], fmt::join(dimensions, ","));
  }
  return text.empty() ? "free" : text;
}

double LayoutSpace::size() const {
  double product = 1;
  for (const auto& group : groups)
    product *= static_cast<double>(nodes[group.front()].states.size());
  return product;
}

LayoutConfig LayoutSpace::standard() const {
  LayoutConfig config;
  for (const ConfigurableNode& node : nodes) config.push_back(node.standard);
  return config;
}

LayoutSpace layout_space(const HloModule& module, const std::vector<std::int64_t>& nodes,
                         std::string_view where) {
  LayoutSpace space;
  std::vector<std::string> computations;
  const std::set<std::int64_t> wanted(nodes.begin(), nodes.end());
  const auto instructions = by_id(module);
  const std::set<std::int64_t> inner = inner_tensors(instructions);
  std::int64_t number = -1;
  for (const HloComputation& computation : module.computations) {
    for (const HloInstruction& own : computation.instructions) {
      ++number;
      if (nodes.empty() ? !takes_layouts(own.opcode) : !wanted.contains(number)) continue;
      const auto shapes = shapes_of(own, instructions);
      ConfigurableNode node{number, own.name, own.opcode, {}, 0, {}, own.op_name, own.source};
      const auto add = [&](const HloInstruction& tensor, bool by_compiler) {
        node.tensors.push_back(
            {tensor.name, static_cast<int>(tensor.shape.dimensions.size()), by_compiler});
      };
      add(own, inner.contains(own.id));
      for (const std::int64_t id : own.operands) {
        if (const auto found = instructions.find(id); found != instructions.end())
          add(*found->second, are_parts(own, *found->second));
      }
      auto states = layout_states(own, shapes);
      if (!states)
        throw DataError(fmt::format("{}: no rule gives the layouts of {}, {} of {} operands", where,
                                    own.name, own.opcode, own.operands.size()));
      node.states = std::move(*states);
      const LayoutState standard = node.states.front();
      std::ranges::sort(node.states);
      node.states.erase(std::ranges::unique(node.states).begin(), node.states.end());
      set_standard(node, standard);
      space.nodes.push_back(std::move(node));
      computations.push_back(computation.name);
    }
  }
  tell_apart(space, computations);
  return space;
}

std::size_t state_index(ConfigurableNode& node, const LayoutState& state) {
  const auto found = std::ranges::find(node.states, state);
  if (found != node.states.end()) return static_cast<std::size_t>(found - node.states.begin());
  if (node.states.size() == kMostStates)
    throw DataError(fmt::format("{} has more than {} states", node.name, kMostStates));
  node.states.push_back(state);
  return node.states.size() - 1;
}

void set_standard(ConfigurableNode& node, const LayoutState& state) {
  if (node.opcode == "dot") {
    const auto alone = [](const LayoutState& of) {
      LayoutState output = kFreeState;
      std::copy_n(of.begin(), kDimensions, output.begin());
      return output;
    };
    for (LayoutState& own : node.states) {
      if (own == alone(own)) own = alone(state);
    }
  }
  node.standard = static_cast<std::uint16_t>(state_index(node, state));
}

void set_standards(LayoutSpace& space, std::span<const float> config) {
  for (std::size_t i = 0; i < space.nodes.size(); ++i) {
    LayoutState state;
    std::ranges::transform(
        config.subspan(i * kLayoutConfigFeatures, kLayoutConfigFeatures), state.begin(),
        [](float d) { return static_cast<std::int8_t>(std::clamp(d, -1.0f, 127.0f)); });
    set_standard(space.nodes[i], state);
  }
}

std::size_t set_standards(LayoutSpace& space, const HloModule& module, const HloModule& assigned) {
  const auto instructions = by_id(assigned);
  std::unordered_map<std::string_view, const HloInstruction*> by_name;
  for (const auto& [id, own] : instructions) {
    const auto [at, fresh] = by_name.emplace(own->name, own);
    if (!fresh) at->second = nullptr;  // in two computations: unknown which
  }
  const auto before = by_id(module);
  std::vector<const HloInstruction*> nodes;
  for (const HloComputation& computation : module.computations) {
    for (const HloInstruction& own : computation.instructions) nodes.push_back(&own);
  }
  std::size_t count = 0;
  for (ConfigurableNode& node : space.nodes) {
    const HloInstruction& own = *nodes[node.node];
    const auto found = by_name.find(own.name);
    if (found == by_name.end() || !found->second || found->second->opcode != node.opcode) continue;
    const auto shapes = shapes_of(*found->second, instructions);
    if (!std::ranges::equal(shapes, shapes_of(own, before), {}, &dimensions_of, &dimensions_of))
      continue;  // another program
    const LayoutState like = node.states[node.standard];
    std::vector<Layout> tensors;
    bool fits = true;
    for (const HloShape* shape : shapes) {
      const int tensor = static_cast<int>(tensors.size());
      tensors.push_back(ordered_as(shape->minor_to_major, like, tensor));
      fits = fits && tensors.back().size() == tensor_layout(like, tensor).size();
    }
    if (!fits) continue;
    set_standard(node, state_of(tensors));
    ++count;
  }
  return count;
}

void group_alike(LayoutSpace& space) {
  using Key = std::tuple<std::string, std::vector<LayoutState>, std::uint16_t>;
  std::map<Key, std::size_t> number;
  space.groups.clear();
  for (std::size_t i = 0; i < space.nodes.size(); ++i) {
    const ConfigurableNode& node = space.nodes[i];
    const auto [at, is_new] =
        number.emplace(Key{node.opcode, node.states, node.standard}, space.groups.size());
    if (is_new) space.groups.emplace_back();
    space.groups[at->second].push_back(i);
  }
}

}  // namespace tpudist
