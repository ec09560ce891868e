#include "core/safetensors/tensor_type.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cmath>

namespace tpudist {
namespace {

struct TypeFacts {
  std::string_view name;
  std::size_t bytes;
};

// By the numbers of the enum.
constexpr std::array<TypeFacts, 13> kTypes{{{"BOOL", 1},
                                            {"U8", 1},
                                            {"I8", 1},
                                            {"I16", 2},
                                            {"U16", 2},
                                            {"F16", 2},
                                            {"BF16", 2},
                                            {"I32", 4},
                                            {"U32", 4},
                                            {"F32", 4},
                                            {"F64", 8},
                                            {"I64", 8},
                                            {"U64", 8}}};

}  // namespace

std::string_view to_text(TensorType type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}

std::optional<TensorType> tensor_type(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<TensorType>(i);
  }
  return std::nullopt;
}

std::string tensor_type_names() {
  std::string names;
  for (const TypeFacts& type : kTypes)
    names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

std::size_t bytes_of(TensorType type) {
  return kTypes[static_cast<std::size_t>(type)].bytes;
}

bool is_floating(TensorType type) {
  return type == TensorType::f64 || type == TensorType::f32 || type == TensorType::f16 ||
         type == TensorType::bf16;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
  if (exponent == 0) {  // zero, or a fraction of 2^-24 without a leading 1
    const float value = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -value : value;
  }
  const std::uint32_t wide = exponent == 0x1fu ? 0xffu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace tpudist
