#pragma once

namespace tpudist {

// Of the operands of a matrix product; it is summed up and given back in float32 in any case.
enum class Precision {
  fp32,
  bf16,  // rounded to nearest even; subnormal numbers may count as 0
};

}  // namespace tpudist
