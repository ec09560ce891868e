#pragma once

#include <cstdint>

#include "core/config/config.hpp"
#include "models/parameters/parameter_table.hpp"

namespace tpudist {

// Widest layer that a config may ask for.
inline constexpr std::int64_t kMaxWidth = 16384;

// How a Linear begins: as torch.nn.Linear does, or with Glorot's weights and a constant bias.
struct LinearStart {
  bool xavier = false;
  double bias = 0;  // with xavier
  // Reads `initialise` and `bias_value`.
  static LinearStart read(ConfigNode node);
  void apply(ParameterEntry& weight, ParameterEntry& bias_entry) const;
};

}  // namespace tpudist
