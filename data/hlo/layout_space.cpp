#include "data/hlo/layout_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "data/hlo/hlo_features.hpp"

namespace tpudist {
namespace {

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
      ConfigurableNode node{number, own.name, own.opcode, {}, 0, {}, own.op_name};
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
    const HloInstruction& own = *nodes[static_cast<std::size_t>(node.node)];
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
