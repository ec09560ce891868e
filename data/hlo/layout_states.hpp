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

}  // namespace tpudist
