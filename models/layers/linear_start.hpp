#pragma once

#include <cstdint>

#include "core/config/config.hpp"
#include "models/parameters/parameter_table.hpp"

namespace tpudist {

// Largest width in a config.
inline constexpr std::int64_t kMaxWidth = 16384;

// Initial values of a Linear: those of torch.nn.Linear, or Glorot's weights and a constant bias.
struct LinearStart {
  bool xavier = false;
  double bias = 0;  // with xavier
  // Reads `initialise` and `bias_value`.
  static LinearStart read(ConfigNode node);
  void apply(ParameterEntry& weight, ParameterEntry& bias_entry) const;
};

}  // namespace tpudist
