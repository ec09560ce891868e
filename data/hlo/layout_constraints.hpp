#pragma once

#include <string>
#include <string_view>

#include "data/hlo/layout_space.hpp"

namespace tpudist {

// A configuration as text to apply; both begin with a comment that holds `title`, and are ASCII.

// Python for jax.experimental.layout: of each operation a function that calls it and constrains
// operands and result. Comments say what JAX cannot constrain: what the compiler chooses, tensors that
// it made and JAX has no name for, operations of a gradient.
std::string jax_constraints(const LayoutSpace& space, const LayoutConfig& config,
                            std::string_view title);

// The data set's LayoutConfig in protobuf's text format: one `nodes` for each operation.
std::string layout_config_text(const LayoutSpace& space, const LayoutConfig& config,
                               std::string_view title);

}  // namespace tpudist
