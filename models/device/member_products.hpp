#pragma once

#include <ATen/core/Tensor.h>

namespace tpudist {

// y = rows W for each member, or rows W^T if `transposed`, in one call of cuBLASLt: rows [M, R, I], W
// [M, I, O] (transposed: [M, O, I]) and y [M, R, O] are planes on one CUDA device, y of float32, both
// others of float32 (`tf32`: rounded to TF32 there) or of bfloat16. A member's bits do not depend on M:
// the algorithm is chosen by the shape of one product, R rounded up to one of eight numbers an octave,
// so that it is seldom asked for, and none is taken that cuts sums in parts. False, and y is not
// written, where the types are others or not on a device, cuBLASLt has none, a size is zero, or the
// program was built without kernels for GPUs. Throws Error if the product is refused.
bool multiply_members(const at::Tensor& rows, const at::Tensor& weight, bool transposed, bool tf32,
                      const at::Tensor& y);

}  // namespace tpudist
