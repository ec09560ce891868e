#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "models/kernels/row_launches.hpp"
#include "models/operators/attend_nodes.hpp"
#include "models/operators/device_copies.hpp"
#include "models/operators/plan_views.hpp"
#include "models/plans/join_plans.hpp"
#include "models/plans/plan.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// Copies of a unit's arrays on one device, for its operators. Operators find a copy by the address
// of the host's array, so they name arrays as on the CPU. The host's arrays must outlive this
// object and must not change. First every array is added, then all are uploaded in one copy. Plans
// lack what only a device needs, so it is made here: the chunks of long rows, the totals of means.
class DeviceArrays {
 public:
  // Rows of more than `chunk` entries are long.
  explicit DeviceArrays(std::int64_t chunk = 128) : chunk_(chunk) {}

  // Registers arrays for upload(). An array that was added before is not added again.
  template <typename T>
  void add(std::span<const T> values) {
    add_bytes(values.data(), values.size_bytes());
  }
  template <typename T>
  void add(const std::vector<T>& values) {
    add(std::span<const T>(values));
  }
  void add(const Csr& matrix);
  void add(const SparseMatrix& matrix);
  void add(const GatherIndex& gather);
  void add(const PlanLayer& layer);
  void add(const RowGroups& groups);
  void add(const NeighbourEntries& entries);
  void add(const Readout& readout);
  void add(NodeAttention& attention);
  void add(const std::shared_ptr<const JoinedUnits>& units);
  // upload() puts the copy into `tensor`, which is contiguous and borrowed until then.
  void add(at::Tensor& tensor);

  // Copies all added arrays to the device at once.
  void upload(DeviceCopies& copies);

  // The copies, borrowed; null where an array is empty. They throw Error for an array that was not
  // uploaded.
  template <typename T>
  const T* find(std::span<const T> values) const {
    return static_cast<const T*>(find_bytes(values.data(), values.size_bytes()));
  }
  template <typename T>
  const T* find(const std::vector<T>& values) const {
    return find(std::span<const T>(values));
  }
  CsrPointers find(const Csr& matrix) const;
  // For each row of matrix.forward, the sum of its weights, at least 1.
  const float* find_totals(const SparseMatrix& matrix) const;
  GroupPointers find(const RowGroups& groups) const;
  ReadoutPointers find(const Readout& readout) const;
  // The units of the joined plan whose arrays these are; null for the plan of one unit.
  const JoinedUnits* units() const { return units_.get(); }

 private:
  // Of a readout.
  struct Derived {
    std::vector<double> nodes;  // node_counts()
    Csr configs_of_slate;
  };
  void add_bytes(const void* data, std::size_t bytes);
  const void* find_bytes(const void* data, std::size_t bytes) const;

  std::int64_t chunk_;
  std::vector<HostPart> parts_;
  std::unordered_map<const void*, std::size_t> part_of_;  // index by the address
  std::vector<at::Tensor*> tensors_;
  std::unordered_map<const Csr*, LongRows> long_rows_;
  std::unordered_map<const SparseMatrix*, std::vector<float>> totals_;
  std::unordered_map<const Readout*, Derived> derived_;
  std::shared_ptr<const JoinedUnits> units_;
  std::size_t bytes_ = 0;
  at::Tensor buffer_;  // uint8, undefined before upload()
};

}  // namespace tpudist
