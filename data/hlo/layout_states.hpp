#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/hlo/hlo_module.hpp"
#include "data/schema/tpugraphs.hpp"

namespace tpudist {

inline constexpr int kTensors = 3, kDimensions = kLayoutConfigFeatures / kTensors;

// The layouts of an operation as columns of node_config_feat: of output, first and second operand six
// dimensions each, minor to major, -1 elsewhere. All -1: the compiler chooses.
using LayoutState = std::array<std::int8_t, kLayoutConfigFeatures>;

inline constexpr LayoutState kFreeState = [] {
  LayoutState free{};
  free.fill(-1);
  return free;
}();

// The state of layouts of output and operands, minor to major; those that are not given are free.
LayoutState state_of(const std::vector<std::vector<std::int64_t>>& tensors);

// The states of an operation by the rules that docs/own-module.md lists, the default one first; a state
// may stand twice. `shapes` are those of its output and its first two operands. Nothing where there is
// no rule for such an operation.
std::optional<std::vector<LayoutState>> layout_states(const HloInstruction& own,
                                                      std::span<const HloShape* const> shapes);

// The dimensions of a tensor (0: output, 1 and 2: operands), minor to major.
std::vector<int> tensor_layout(const LayoutState& state, int tensor);
// "out {3,0} in {0,3} kernel {3,2}", or "free" where the compiler chooses.
std::string layout_text(std::string_view opcode, const LayoutState& state);

}  // namespace tpudist
