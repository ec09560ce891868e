#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/inputs/unit_input.hpp"
#include "models/operators/aten_operators.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// An EdgeSet and a PlanLayer of a plan as tensors on a device.
struct DeviceEdgeSet {
  DeviceSparseMatrix aggregate;
  DeviceGatherIndex neighbourhood;
};

struct DeviceLayer {
  DeviceGatherIndex self;
  std::vector<DeviceEdgeSet> edges;
};

// What the device keeps of a graph as long as the graph is used.
struct DeviceGraph {
  at::Tensor features;  // float32 [nodes, kNodeFeatures]
};
// Copies a graph's features to the device.

DeviceGraph to_device(const GraphInput& graph, at::Device device);

// A unit on the device. All of its tensors but the features are views of one buffer.
struct DeviceUnit {
  at::Tensor features;     // float32 [nodes, kNodeFeatures], the unit's graphs one behind the other
  at::Tensor opcode;       // int32 [nodes]
  at::Tensor states;       // float32 [states + 1, F], the last row zero
  at::Tensor node, state;  // int32 [first rows]; a row without a state takes the last row of states
  DeviceCsr rows_of_node, rows_of_state, nodes_of_opcode;
  std::vector<std::shared_ptr<const DeviceLayer>> layers;  // equal ones shared
  std::int64_t needed_first_rows = 0;                      // as in the plan
  std::vector<NeededCounts> needed_counts;

  std::int64_t needed_rows(std::size_t layer) const {
    return layer == 0 ? needed_first_rows : needed_counts[layer - 1].rows;
  }
};

// Where one array lies in a unit's buffer.
struct UnitArray {
  at::ScalarType type = at::kByte;
  std::int64_t count = 0;
  std::int64_t begin = 0;  // in bytes
};

// The arrays of a unit (the plan's integers and weights, and the states) one behind the other in
// one host buffer, so that one copy takes them to the device. Immutable.
struct StagedUnit {
  at::Tensor buffer;              // uint8; page-locked for a CUDA device
  std::vector<UnitArray> arrays;  // in the order in which view_unit takes them
};

// Packs a complete unit for a device. `config_features`: F of its states.
StagedUnit stage_unit(const UnitInput& input, std::int64_t config_features, at::Device device);

// Returns the unit whose staged buffer has been copied to `buffer`, or will be: only the places of
// its arrays are used, not the numbers in them.
DeviceUnit view_unit(const UnitInput& input, const StagedUnit& staged, const at::Tensor& buffer,
                     std::int64_t config_features);

}  // namespace tpudist
