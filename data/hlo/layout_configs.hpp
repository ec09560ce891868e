#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/hlo/layout_space.hpp"

namespace tpudist {

// Distinct configurations, drawn uniformly: the default one, then at most count - 1 others; all if
// the space has no more than `count`. Equal seeds give equal configurations on every machine.
std::vector<LayoutConfig> random_configs(const LayoutSpace& space, std::int64_t count,
                                         std::uint64_t seed);
// The default configuration, then all configurations that differ from it in one group.
std::vector<LayoutConfig> neighbour_configs(const LayoutSpace& space);
// The configurations of a JSON text: a list of objects {"instruction": [[3, 0], [0, 3], [3, 2]],
// ...} with the dimensions of output, first and second operand, minor to major. Other instructions
// have their default state. New states are added to their node. Throws DataError.
std::vector<LayoutConfig> json_configs(LayoutSpace& space, std::string_view json,
                                       std::string_view where);

// A configuration as text to apply. Both texts begin with a comment with `title`, and are ASCII.

// Python for jax.experimental.layout: for each operation whose state is not the default, a function
// that calls the operation and constrains operands and result. First says how many of the changes,
// layouts that differ from the default's, the functions constrain, and why not the others: free
// choices of the compiler, tensors of the compiler that have no name in JAX, operations of a
// gradient. Names the source line of an operation if the dump does.
std::string jax_constraints(const LayoutSpace& space, const LayoutConfig& config,
                            std::string_view title);

// The data set's LayoutConfig in protobuf's text format: one `nodes` for each operation, because its
// place names the operation. A comment marks those that are not the default.
std::string layout_config_text(const LayoutSpace& space, const LayoutConfig& config,
                               std::string_view title);

}  // namespace tpudist
