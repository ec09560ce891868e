#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/graph_input.hpp"
#include "models/plan.hpp"

// The few operators of the ATen executor, on any device. For .cpp files of models/ only: it
// includes ATen.

namespace tpudist {

struct DeviceCsr {
  at::Tensor begin, source;  // int64 [rows + 1], int64 [entries]
  at::Tensor weight;         // float32 [entries]; undefined: all 1
};

struct DeviceRelation {
  DeviceCsr in, out;
  std::int64_t lanes = 1;
};

struct DeviceSelection {
  at::Tensor of;   // int64 [rows]; undefined: the identity
  DeviceCsr rows;  // the transpose
};

struct DeviceEdgeSet {
  DeviceRelation sum;
  DeviceSelection group;
};

struct DeviceStep {
  std::int64_t rows_in = 0;
  DeviceSelection self;
  std::vector<DeviceEdgeSet> edges;
};

struct DeviceGraph {
  at::Tensor features;  // float32 [nodes, 140]
  at::Tensor opcode;    // int64 [nodes]
};

at::Tensor to_device(std::vector<std::int32_t> const& values, at::Device device);  // as int64
DeviceCsr to_device(const Csr& csr, at::Device device);
DeviceStep to_device(const Step& step, at::Device device);
DeviceGraph to_device(const GraphInput& graph, at::Device device);

// The sparse product on x [rows, C], for K lanes on [rows / K, K * C]; by gather in the order of
// the entries, so the same bits in every run. Own kernel on CUDA where it was built, ATen's
// segment_reduce otherwise.
at::Tensor sparse_product(const DeviceCsr& matrix, std::int64_t lanes, const at::Tensor& x);

// What each row takes: x[of], and the transpose: the sums over the rows that take each thing.
at::Tensor select(const DeviceSelection& selection, const at::Tensor& things);
at::Tensor sum_takers(const DeviceSelection& selection, const at::Tensor& rows);

}  // namespace tpudist
