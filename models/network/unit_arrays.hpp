#pragma once

#include "models/network/prepared_unit.hpp"
#include "models/operators/device_arrays.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// Collects all integer arrays that the operators of a network read from a unit. `part` must outlive
// the result.
DeviceArrays arrays_of(const PreparedPlan& part);

}  // namespace tpudist
