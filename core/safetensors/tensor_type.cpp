#include "core/safetensors/tensor_type.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>

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

float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace tpudist
