#pragma once

#include <string_view>

namespace tpudist {

// How the operands of a matrix product are rounded. Sums and results are always float32.
enum class Precision {
  fp32,
  tf32,  // to 10 binary digits after the point, to nearest, ties away from 0 (cvt.rna.tf32.f32)
  bf16,  // to 7, to nearest, ties to even; subnormal numbers may be treated as 0
};

constexpr std::string_view precision_name(Precision precision) {
  return precision == Precision::tf32 ? "tf32" : precision == Precision::bf16 ? "bf16" : "fp32";
}

// The precision of this name.
constexpr Precision precision_of(std::string_view name) {
  return name == "tf32" ? Precision::tf32 : name == "bf16" ? Precision::bf16 : Precision::fp32;
}

}  // namespace tpudist
