#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/hlo/hlo_module.hpp"
#include "data/schema/feature_schema.hpp"

namespace tpudist {

inline constexpr int kTensors = 3, kDimensions = kLayoutConfigFeatures / kTensors;

// The layouts of an operation as columns of node_config_feat: six dimensions each of output, first
// and second operand, minor to major, -1 elsewhere. All -1: the compiler chooses.
using LayoutState = std::array<std::int8_t, kLayoutConfigFeatures>;

inline constexpr LayoutState kFreeState = [] {
  LayoutState free{};
  free.fill(-1);
  return free;
}();

// The state for layouts of output and operands, minor to major; layouts not given are free.
LayoutState state_of(const std::vector<std::vector<std::int64_t>>& tensors);

// The states of an operation by the rules in docs/own-module.md, the default first; a state may
// occur twice. `shapes`: of the output and the first two operands. Nothing if no rule fits the
// operation.
std::optional<std::vector<LayoutState>> layout_states(const HloInstruction& own,
                                                      std::span<const HloShape* const> shapes);

// The dimensions of a tensor (0: output, 1 and 2: operands), minor to major.
std::vector<int> tensor_layout(const LayoutState& state, int tensor);
// "out {3,0} in {0,3} kernel {3,2}", or "free" if the compiler chooses.
std::string layout_text(std::string_view opcode, const LayoutState& state);

// An operation whose layouts are configured.
struct ConfigurableNode {
  // The output or an operand.
  struct Tensor {
    std::string name;  // of the instruction
    int rank = 0;
    // Whether the compiler made it, such as the transposed operand of a dot: front ends have no
    // name for it.
    bool by_compiler = false;
  };

  std::int64_t node = 0;  // number in the graph
  std::string name, opcode;
  std::vector<LayoutState> states;
  std::uint16_t standard = 0;   // index of the default state
  std::vector<Tensor> tensors;  // output and operands
  std::string jax_name;         // HloInstruction::op_name
  std::string source;           // HloInstruction::source
};

// The index of each node's state.
using LayoutConfig = std::vector<std::uint16_t>;

// All configurations of a module. Plain data.
struct LayoutSpace {
  std::vector<ConfigurableNode> nodes;
  // Indices of nodes that change together, with the same states in the same order; by the first.
  std::vector<std::vector<std::size_t>> groups;

  double size() const;  // number of configurations
  LayoutConfig standard() const;
};

// The nodes whose layouts the data set's compiler configures: all convolutions, dots and reshapes,
// or the given node numbers. States follow the rules in docs/own-module.md and are sorted; default
// states descend. There are no groups yet. Throws DataError, beginning with `where`.
LayoutSpace layout_space(const HloModule& module, const std::vector<std::int64_t>& nodes,
                         std::string_view where);

// The index of a state, which is added if the node does not have it. Throws DataError if the node
// already has the most states allowed.
std::size_t state_index(ConfigurableNode& node, const LayoutState& state);
// Makes a state the default of a node, and adds the state if the node does not have it. A dot's
// state that fixes only the output takes the default output.
void set_standard(ConfigurableNode& node, const LayoutState& state);
// The default states of all nodes, as a row of node_config_feat [nodes, 18].
void set_standards(LayoutSpace& space, std::span<const float> config);
// Takes default states from the same program after layout assignment, by name, if opcode and
// dimensions agree. Returns the number of nodes found; other nodes keep their defaults.
std::size_t set_standards(LayoutSpace& space, const HloModule& module, const HloModule& assigned);
// Groups nodes of equal opcode, states and default state.
void group_alike(LayoutSpace& space);

}  // namespace tpudist
