#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tpudist {

// Element types of the datasets and attributes in shards and checkpoints.
enum class ElementType { i8, i16, i32, i64, u8, u16, f32, f64 };

std::size_t element_bytes(ElementType type);
std::string_view element_name(ElementType type);  // "i8", ...

// The HDF5 type of the element (a hid_t), little-endian in the file and, on all supported machines,
// in memory, so that HDF5 converts nothing. Owned by the library. Call it with the lock held.
std::int64_t hdf5_type(ElementType type);

// The element type of an arithmetic type; int is i32.
template <typename T>
constexpr ElementType element_type() {
  static_assert(std::is_arithmetic_v<T>);
  if constexpr (std::is_same_v<T, std::int8_t>) return ElementType::i8;
  if constexpr (std::is_same_v<T, std::int16_t>) return ElementType::i16;
  if constexpr (std::is_same_v<T, std::int32_t>) return ElementType::i32;
  if constexpr (std::is_same_v<T, std::int64_t>) return ElementType::i64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return ElementType::u8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return ElementType::u16;
  if constexpr (std::is_same_v<T, float>) return ElementType::f32;
  if constexpr (std::is_same_v<T, double>) return ElementType::f64;
}

// Compact storage of floats that are whole numbers. A value fits a type if converting the stored
// value back gives the same bits, so -0.0, fractions, NaN and infinity fit no integer type. `type`
// is i8, i16, i32 or f32 (f32 always fits).

// Writes `values` as `type` to `out` (values.size() * element_bytes(type) bytes). Returns the index
// of the first value that does not fit, if any; the content of `out` is then undefined.
std::optional<std::size_t> narrow(std::span<const float> values, ElementType type,
                                  std::span<std::byte> out);

// Converts back to float. Throws std::invalid_argument for another type or if sizes do not match.
void widen(std::span<const std::byte> stored, ElementType type, std::span<float> values);

// The smallest of i8, i16, i32, f32 that holds all values.
ElementType narrowest_type(std::span<const float> values);

// The next wider type; f32 stays.
ElementType wider(ElementType type);

}  // namespace tpudist
