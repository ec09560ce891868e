#pragma once

namespace tpudist {

// How the operands of a matrix product are rounded. Sums and results are always float32.
enum class Precision {
  fp32,
  bf16,  // rounded to nearest even; subnormal numbers may be treated as 0
};

}  // namespace tpudist
