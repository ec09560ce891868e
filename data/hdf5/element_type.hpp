#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

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

}  // namespace tpudist
