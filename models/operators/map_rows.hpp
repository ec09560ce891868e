#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/operators/backend.hpp"

namespace tpudist {

// A function of single rows, written with differentiable operations of ATen: it gets a block of rows
// of every input, each [rows, M, C_i], and the parameters, each [M, ...], and returns a tensor whose
// row i depends on row i of the inputs alone. It is called from several threads at once.
using RowFunction = std::function<at::Tensor(const std::vector<at::Tensor>& rows,
                                             const std::vector<at::Tensor>& parameters)>;

// Applies a row-wise function to inputs of equally many rows (at least one), block by block, in the
// threads of the pool. Differentiable: the backward pass runs each block again with a graph of its
// own, and the gradients of parameters are partial sums over fixed chunks of rows, added in order.
// Nothing but the inputs is kept for it. The bits do not depend on the number of threads. On a device
// it is one call on all rows, whose operations are recorded as they are.
at::Tensor map_rows(const RowFunction& function, const std::vector<at::Tensor>& rows,
                    const std::vector<at::Tensor>& parameters, const Backend& backend);

// The backward pass of a function without parameters, written by hand: it gets a block of rows of every
// input and of d loss / d result, and writes d loss / d input into the blocks of `d_rows`, which are
// undefined for inputs that take no gradient.
using RowGradient =
    std::function<void(const std::vector<at::Tensor>& rows, const at::Tensor& d_result,
                       std::vector<at::Tensor>& d_rows)>;

// The same where `gradient` says how to differentiate the function, which is not run again.
at::Tensor map_rows(const RowFunction& function, const RowGradient& gradient,
                    const std::vector<at::Tensor>& rows, const Backend& backend);

// Puts the channels of tensors of equally many rows side by side: [rows, M, C_1 + C_2 + ...].
at::Tensor join_channels(const std::vector<at::Tensor>& rows, const Backend& backend);

}  // namespace tpudist
