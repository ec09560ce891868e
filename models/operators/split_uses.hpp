#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/operators/backend.hpp"

namespace tpudist {

// Returns x [M, rows, C], float32 or double, `count` times: once for each of its uses. The
// gradients of the uses are added in this order, block by block in the threads of the pool.
// Autograd alone would add them in a single thread, which matters only on the CPU. The backend must
// outlive the recorded graph.
std::vector<at::Tensor> split_uses(const at::Tensor& x, int count, const Backend& backend);

}  // namespace tpudist
