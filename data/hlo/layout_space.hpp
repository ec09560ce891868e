#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/hlo/hlo_module.hpp"
#include "schema/tpugraphs.hpp"

namespace tpudist {

inline constexpr int kTensors = 3, kDimensions = kLayoutConfigFeatures / kTensors;

// The layouts of an operation as columns of node_config_feat: of output, first and second operand six
// dimensions each, minor to major, -1 elsewhere. All -1: the compiler chooses.
using LayoutState = std::array<std::int8_t, kLayoutConfigFeatures>;

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

// Makes a state the default one of a node, which gains it where the rules do not give it. The state of
// a dot that fixes its output alone is that of the default output.
void set_standard(ConfigurableNode& node, const LayoutState& state);
// The default states of all nodes, as a row of node_config_feat [nodes, 18].
void set_standards(LayoutSpace& space, std::span<const float> config);
// Takes the default states from the same program after layout assignment, by name. Returns the number
// of nodes that are there; the others keep theirs.
std::size_t set_standards(LayoutSpace& space, const HloModule& module, const HloModule& assigned);
// Groups nodes of equal opcode, states and default state.
void group_alike(LayoutSpace& space);

// Distinct configurations, drawn evenly: first the default one, then at most count - 1 more; all of
// them where the space has no more. Equal seeds give equal configurations on every machine.
std::vector<LayoutConfig> random_configs(const LayoutSpace& space, std::int64_t count,
                                         std::uint64_t seed);
// The default configuration, then all that differ from it in one group.
std::vector<LayoutConfig> neighbour_configs(const LayoutSpace& space);
// Those of a JSON text: a list of objects {"instruction": [[3, 0], [0, 3], [3, 2]], ...} with the
// dimensions of output, first and second operand, minor to major; instructions that are not named
// have their default state. A node gains states that it does not have. Throws DataError.
std::vector<LayoutConfig> json_configs(LayoutSpace& space, std::string_view json,
                                       std::string_view where);

// The dimensions of a tensor (0: output, 1 and 2: operands), minor to major.
std::vector<int> tensor_layout(const LayoutState& state, int tensor);
// "out {3,0} in {0,3} kernel {3,2}", or "free" where the compiler chooses.
std::string layout_text(std::string_view opcode, const LayoutState& state);

}  // namespace tpudist
