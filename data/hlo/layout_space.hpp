#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/hlo/hlo_module.hpp"
#include "data/hlo/layout_states.hpp"

namespace tpudist {

// Output or operand of an operation.
struct ConfigurableTensor {
  std::string name;  // of the instruction
  int rank = 0;
  // Whether the compiler made it: front ends have no name for it, as for the transposed operand of
  // a dot.
  bool by_compiler = false;
};

// An operation whose layouts are configured.
struct ConfigurableNode {
  std::int64_t node = 0;  // number in the graph
  std::string name, opcode;
  std::vector<LayoutState> states;
  std::uint16_t standard = 0;               // index of the default one
  std::vector<ConfigurableTensor> tensors;  // output and operands
  std::string jax_name;                     // HloInstruction::op_name
};

// Of each node the index of its state.
using LayoutConfig = std::vector<std::uint16_t>;

// All configurations of a module. Plain data.
struct LayoutSpace {
  std::vector<ConfigurableNode> nodes;
  // Indices of nodes that change together, which have the same states in the same order; by the first.
  std::vector<std::vector<std::size_t>> groups;

  double size() const;  // number of configurations
  LayoutConfig standard() const;
};

// The nodes whose layouts the compiler of the data set configures: all convolutions, dots and
// reshapes, or those given (node numbers). Their states by the rules that docs/own-module.md lists, sorted;
// the default ones descend, and there are no groups. Throws DataError, beginning with `where`.
LayoutSpace layout_space(const HloModule& module, const std::vector<std::int64_t>& nodes,
                         std::string_view where);

// The index of a state, which a node gains where it does not have it. Throws DataError where it has the
// most that it may have.
std::size_t state_index(ConfigurableNode& node, const LayoutState& state);
// Makes a state the default one of a node, which gains it where the rules do not give it. The state of
// a dot that fixes its output alone is that of the default output.
void set_standard(ConfigurableNode& node, const LayoutState& state);
// The default states of all nodes, as a row of node_config_feat [nodes, 18].
void set_standards(LayoutSpace& space, std::span<const float> config);
// Takes the default states from the same program after layout assignment, by name, where opcode and
// dimensions are the same. Returns the number of nodes that are there; the others keep theirs.
std::size_t set_standards(LayoutSpace& space, const HloModule& module, const HloModule& assigned);
// Groups nodes of equal opcode, states and default state.
void group_alike(LayoutSpace& space);

}  // namespace tpudist
