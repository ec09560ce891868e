#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

// The few operators of the ATen executor, on any device. For .cpp files of models/ only: it
// includes ATen.

namespace tpudist {

// A Csr as tensors.
struct DeviceCsr {
  at::Tensor begin, source;  // int64 [rows + 1], int32 [entries]
  at::Tensor weight;         // float32 [entries]; undefined: all 1
};

struct DeviceRelation {
  DeviceCsr in, out;
  std::int64_t lanes = 1;
};

struct DeviceSelection {
  at::Tensor of;   // int32 [rows]; undefined: the identity
  DeviceCsr rows;  // the transpose
};

// All sparse operators work on x [rows, C], for K lanes on [rows / K, K * C], by gather in the
// order of the entries, so they give the same bits in every run. Own kernels on CUDA where they
// were built, ATen's operators otherwise (the functions that end in _by_aten: for tests, on any
// device).

// The sparse product, summed in float32. `type`: float32, or bfloat16 to round the sums to.
at::Tensor sparse_product(const DeviceCsr& matrix, std::int64_t lanes, const at::Tensor& x,
                          at::ScalarType type = at::kFloat);

// The largest of each row's sources, channel by channel; 0 where a row has none, NaN where one is.
// The weights take no part.
at::Tensor sparse_max(const DeviceCsr& matrix, std::int64_t lanes, const at::Tensor& x);

// d loss / d x from the gradient of best = sparse_max(relation.in, lanes, x): sources that equal a
// row's best share its gradient in proportion to their weights. A best of NaN passes nothing on.
at::Tensor sparse_max_gradient(const DeviceRelation& relation, const at::Tensor& x,
                               const at::Tensor& best, const at::Tensor& gradient);

at::Tensor sparse_product_by_aten(const DeviceCsr& matrix, std::int64_t lanes, const at::Tensor& x);
at::Tensor sparse_max_by_aten(const DeviceCsr& matrix, std::int64_t lanes, const at::Tensor& x);
at::Tensor sparse_max_gradient_by_aten(const DeviceRelation& relation, const at::Tensor& x,
                                       const at::Tensor& best, const at::Tensor& gradient);

// What each row takes: x[of], and the transpose: the sums over the rows that take each thing, of
// `type` where they are sums.
at::Tensor select(const DeviceSelection& selection, const at::Tensor& things);
at::Tensor sum_takers(const DeviceSelection& selection, const at::Tensor& rows,
                      at::ScalarType type = at::kFloat);

}  // namespace tpudist
