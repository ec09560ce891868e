#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/aten_operators.hpp"
#include "models/network.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// The unit on the device.
struct DeviceUnit {
  at::Tensor features, opcode;     // of all graphs
  at::Tensor states, node, state;  // state [rows]: -1 moved to a zero row behind the table
  DeviceCsr rows_of_node, rows_of_state, nodes_of_opcode;
  std::vector<std::shared_ptr<const DeviceStep>> steps;
};

DeviceUnit to_device(const UnitInput& input, std::int64_t config_features, at::Device device);

}  // namespace tpudist
