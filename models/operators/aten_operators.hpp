#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

// The few operators of the ATen executor, on any device. For .cpp files of models/ only, because it
// includes ATen.

namespace tpudist {

// A Csr as tensors on one device.
struct DeviceCsr {
  at::Tensor begin, source;  // int64 [rows + 1], int32 [entries]
  at::Tensor weight;         // float32 [entries]; undefined when every weight is 1
};

// A SparseMatrix of a plan as tensors.
struct DeviceSparseMatrix {
  DeviceCsr forward, transposed;
  std::int64_t replicas = 1;
};

// A GatherIndex of a plan as tensors.
struct DeviceGatherIndex {
  at::Tensor index;      // int32 [rows]; undefined for the identity
  DeviceCsr transposed;  // as in GatherIndex
};

// All sparse operators take x [rows, C], with K replicas as [rows / K, K * C], and add terms in the
// order of the entries, so that they give the same bits in every run. On CUDA they use the
// project's own kernels where these were built, otherwise ATen's operators. The functions that end
// in _by_aten use ATen's on any device, for tests.

// The product of a sparse matrix with dense rows, summed in float32. `type`: float32, or bfloat16
// to which the sums are rounded.
at::Tensor spmm(const DeviceCsr& matrix, std::int64_t replicas, const at::Tensor& x,
                at::ScalarType type = at::kFloat);

// The largest of each row's sources, channel by channel; 0 where a row has none, NaN where one of
// them is NaN. The weights take no part.
at::Tensor spmm_max(const DeviceCsr& matrix, std::int64_t replicas, const at::Tensor& x);

// d loss / d x from the gradient of best = spmm_max(matrix.forward, replicas, x): the sources that
// equal a row's best share its gradient in proportion to their weights. A best of NaN passes
// nothing on.
at::Tensor spmm_max_backward(const DeviceSparseMatrix& matrix, const at::Tensor& x,
                             const at::Tensor& best, const at::Tensor& gradient);

at::Tensor spmm_by_aten(const DeviceCsr& matrix, std::int64_t replicas, const at::Tensor& x);
at::Tensor spmm_max_by_aten(const DeviceCsr& matrix, std::int64_t replicas, const at::Tensor& x);
at::Tensor spmm_max_backward_by_aten(const DeviceSparseMatrix& matrix, const at::Tensor& x,
                                     const at::Tensor& best, const at::Tensor& gradient);

// x[index], and its backward pass: the sums over the rows that take each row of x, in `type` unless
// the index is the identity.
at::Tensor gather(const DeviceGatherIndex& index, const at::Tensor& x);
at::Tensor gather_backward(const DeviceGatherIndex& index, const at::Tensor& rows,
                           at::ScalarType type = at::kFloat);

}  // namespace tpudist
