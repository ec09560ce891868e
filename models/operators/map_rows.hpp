#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/operators/backend.hpp"

namespace tpudist {

// Applies a row-wise function to inputs with equal numbers of rows (at least one), block by block,
// in the threads of the pool. Differentiable. The backward pass keeps only the inputs and runs each
// block again with its own autograd graph. The gradients of parameters are partial sums over fixed
// chunks of rows, added in order. The bits do not depend on the number of threads. On a device it
// is one call on all rows, and autograd records its operations.
at::Tensor map_rows(const RowFunction& function, const std::vector<at::Tensor>& rows,
                    const std::vector<at::Tensor>& parameters, const Backend& backend);

// The same with a handwritten `gradient`; the backward pass does not run the function again.
at::Tensor map_rows(const RowFunction& function, const RowGradient& gradient,
                    const std::vector<at::Tensor>& rows, const Backend& backend);

// Concatenates the channels of tensors with equal numbers of rows: [rows, M, C_1 + C_2 + ...].
at::Tensor join_channels(const std::vector<at::Tensor>& rows, const Backend& backend);

}  // namespace tpudist
