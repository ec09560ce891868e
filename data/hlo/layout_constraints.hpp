#pragma once

#include <string>
#include <string_view>

#include "data/hlo/layout_space.hpp"

namespace tpudist {

// A configuration as text to apply. Both texts begin with a comment with `title`, and are ASCII.

// Python for jax.experimental.layout: for each operation, a function that calls the operation and
// constrains operands and result. Comments name what JAX cannot constrain: free choices of the
// compiler, tensors of the compiler that have no name in JAX, operations of a gradient.
std::string jax_constraints(const LayoutSpace& space, const LayoutConfig& config,
                            std::string_view title);

// The data set's LayoutConfig in protobuf's text format: one `nodes` for each operation.
std::string layout_config_text(const LayoutSpace& space, const LayoutConfig& config,
                               std::string_view title);

}  // namespace tpudist
