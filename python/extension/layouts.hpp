#pragma once

#include <nanobind/nanobind.h>

namespace tpudist::python {

// Adds to the module: layouts, apply_layouts, write_npz.
void add_layouts(nanobind::module_& module);

}  // namespace tpudist::python
