#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/operators/backend.hpp"

namespace tpudist {

// Applies a row-wise function to inputs [M, rows, C_i] with equal numbers of rows (at least one),
// member by member and block by block, in the threads of the pool. An input may have one plane for
// all members; parameters are [M, ...]. Differentiable. The backward pass keeps only the inputs and
// runs each block again with its own autograd graph. The gradients of parameters are partial sums
// over fixed chunks of rows, added in order. The bits do not depend on the number of threads. On a
// device it is one call on all rows of a member, and autograd records its operations.
at::Tensor map_rows(const RowFunction& function, const std::vector<at::Tensor>& rows,
                    const std::vector<at::Tensor>& parameters, const Backend& backend);

// A function that writes a result of `channels`, with a handwritten `gradient`: the backward pass
// does not run the function again. On a device it is one call on all members.
at::Tensor map_rows(const RowWriter& function, const RowGradient& gradient,
                    const std::vector<at::Tensor>& rows, std::int64_t channels,
                    const Backend& backend);

// Concatenates the channels of tensors with equal numbers of rows: [M, rows, C_1 + C_2 + ...].
at::Tensor join_channels(const std::vector<at::Tensor>& rows, const Backend& backend);

}  // namespace tpudist
