#pragma once

#include "models/network/prepared_unit.hpp"
#include "models/operators/device_arrays.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// Notes all integers that the operators of a network take of a unit. `part` must outlive the result.
DeviceArrays arrays_of(const PreparedPlan& part);

}  // namespace tpudist
