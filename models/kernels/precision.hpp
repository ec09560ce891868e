#pragma once

namespace tpudist {

// How the operands of a matrix product are rounded. Sums and results are float32 in any case.
enum class Precision {
  fp32,
  bf16,  // rounded to nearest even; subnormal numbers may count as 0
};

}  // namespace tpudist
