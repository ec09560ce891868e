#pragma once

#include <cstdint>
#include <string_view>

#include "core/config/config.hpp"

namespace tpudist {

// The largest allowed number where no other limit applies.
inline constexpr std::int64_t kMany = std::int64_t{1} << 40;

// The number under `key`, from 1 to `max`.
inline int positive(ConfigNode& node, std::string_view key, int fallback, int max = 1 << 20) {
  return static_cast<int>(node.integer(key, fallback, {1, max}));
}

}  // namespace tpudist
