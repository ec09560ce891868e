#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// What the numbers of a stored tensor are. In the order in which the safetensors package sorts them
// when it writes.
enum class TensorType { boolean, u8, i8, i16, u16, f16, bf16, i32, u32, f32, f64, i64, u64 };

// The name in a safetensors header, e.g. "F32".
std::string_view to_text(TensorType type);
// Nothing where it is none of those above.
std::optional<TensorType> tensor_type(std::string_view name);
// The names of all types, for messages.
std::string tensor_type_names();

std::size_t bytes_of(TensorType type);
// F64, F32, F16 or BF16.
bool is_floating(TensorType type);

// "[3, 4]"; "[]" for a single number.
std::string shape_text(const std::vector<std::int64_t>& shape);

// The value of the bits of an IEEE 754 binary16 number. Exact; a NaN stays one.
float half_to_float(std::uint16_t bits);
// The value of the bits of a bfloat16 number, the upper half of a float32.
float bfloat16_to_float(std::uint16_t bits);

}  // namespace tpudist
