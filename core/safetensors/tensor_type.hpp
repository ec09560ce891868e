#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// The element type of a stored tensor, in the order in which the safetensors package sorts types.
enum class TensorType { boolean, u8, i8, i16, u16, f16, bf16, i32, u32, f32, f64, i64, u64 };

// The name in a safetensors header, e.g. "F32".
std::string_view to_text(TensorType type);
// Nothing for an unknown name.
std::optional<TensorType> tensor_type(std::string_view name);
// The names of all types, for messages.
std::string tensor_type_names();

std::size_t bytes_of(TensorType type);
// F64, F32, F16 or BF16.
bool is_floating(TensorType type);

// "[3, 4]"; "[]" for a single number.
std::string shape_text(const std::vector<std::int64_t>& shape);

// The value of a bfloat16 number (the upper half of a float32), given its bits.
float bfloat16_to_float(std::uint16_t bits);

}  // namespace tpudist
