#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/operators/backend.hpp"

namespace tpudist {

// Returns `count` times x, [rows, M, C], float32 or double, one for each use that is made of it. Their
// gradients are added in this order, block by block in the threads of the pool; autograd would add the
// gradients of one tensor with several uses in a single thread (which a device does not mind). The
// backend must outlive the recorded graph.
std::vector<at::Tensor> split_uses(const at::Tensor& x, int count, const Backend& backend);

}  // namespace tpudist
