#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/operators/backend.hpp"

namespace tpudist {

// Applies a row-wise function to inputs of equally many rows (at least one), block by block, in the
// threads of the pool. Differentiable: the backward pass runs each block again with a graph of its
// own, and the gradients of parameters are partial sums over fixed chunks of rows, added in order.
// Nothing but the inputs is kept for it. The bits do not depend on the number of threads. On a device
// it is one call on all rows, whose operations are recorded as they are.
at::Tensor map_rows(const RowFunction& function, const std::vector<at::Tensor>& rows,
                    const std::vector<at::Tensor>& parameters, const Backend& backend);

// The same where `gradient` says how to differentiate the function, which is not run again.
at::Tensor map_rows(const RowFunction& function, const RowGradient& gradient,
                    const std::vector<at::Tensor>& rows, const Backend& backend);

// Puts the channels of tensors of equally many rows side by side: [rows, M, C_1 + C_2 + ...].
at::Tensor join_channels(const std::vector<at::Tensor>& rows, const Backend& backend);

}  // namespace tpudist
