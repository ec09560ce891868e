#pragma once

#include "models/network/prepared_unit.hpp"
#include "models/operators/device_arrays.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// Adds all arrays that a network reads from a unit. upload() puts the tensors of `part` on the
// device. `part` must outlive `arrays`.
void add_arrays(PreparedPlan& part, DeviceArrays& arrays);

}  // namespace tpudist
