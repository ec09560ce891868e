#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "data/hlo/layout_space.hpp"

namespace tpudist {

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

}  // namespace tpudist
