#include "data/hdf5/element_type.hpp"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace tpudist {
namespace {

static_assert(std::endian::native == std::endian::little);

struct Traits {
  std::string_view name;
  std::size_t bytes;
};

// In the order of ElementType.
constexpr std::array<Traits, 8> kTraits{
    {{"i8", 1}, {"i16", 2}, {"i32", 4}, {"i64", 8}, {"u8", 1}, {"u16", 2}, {"f32", 4}, {"f64", 8}}};

// Clamps values into the type's range first, so that the conversion is always defined; NaN becomes
// the lower end. A clamped or rounded value has different bits after widening.
template <typename T>
bool narrow_block(const float* values, std::size_t count, T* out) {
  constexpr float kLow = static_cast<float>(std::numeric_limits<T>::min());
  // The largest float below 2^31 is 2147483520.
  constexpr float kHigh =
      sizeof(T) < 4 ? static_cast<float>(std::numeric_limits<T>::max()) : 2147483520.0f;
  std::uint32_t difference = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float value = values[i];
    const float low = kLow < value ? value : kLow;
    const auto whole = static_cast<std::int32_t>(low < kHigh ? low : kHigh);
    out[i] = static_cast<T>(whole);
    difference |= std::bit_cast<std::uint32_t>(static_cast<float>(whole)) ^
                  std::bit_cast<std::uint32_t>(value);
  }
  return difference == 0;
}

constexpr std::size_t kBlock = 1024;

template <typename T>
std::optional<std::size_t> narrow_as(std::span<const float> values, std::span<std::byte> out) {
  T block[kBlock];
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, values.size() - begin);
    if (!narrow_block(&values[begin], count, block)) {
      for (std::size_t i = begin;; ++i) {
        if (!narrow_block(&values[i], 1, block)) return i;
      }
    }
    std::memcpy(out.data() + begin * sizeof(T), block, count * sizeof(T));
  }
  return std::nullopt;
}

template <typename T>
void widen_as(std::span<const std::byte> stored, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, stored.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
}

void check_sizes(std::size_t bytes, std::size_t values, ElementType type) {
  const bool known = type == ElementType::i8 || type == ElementType::i16 ||
                     type == ElementType::i32 || type == ElementType::f32;
  if (!known || bytes != values * element_bytes(type)) {
    throw std::invalid_argument("narrow storage: wrong type or size");
  }
}

}  // namespace

std::size_t element_bytes(ElementType type) {
  return kTraits.at(static_cast<std::size_t>(type)).bytes;
}

std::string_view element_name(ElementType type) {
  return kTraits.at(static_cast<std::size_t>(type)).name;
}

std::int64_t hdf5_type(ElementType type) {
  static const std::array<std::int64_t, kTraits.size()> types{
      H5T_STD_I8LE, H5T_STD_I16LE, H5T_STD_I32LE,  H5T_STD_I64LE,
      H5T_STD_U8LE, H5T_STD_U16LE, H5T_IEEE_F32LE, H5T_IEEE_F64LE};
  return types.at(static_cast<std::size_t>(type));
}

std::optional<std::size_t> narrow(std::span<const float> values, ElementType type,
                                  std::span<std::byte> out) {
  check_sizes(out.size(), values.size(), type);
  if (type == ElementType::i8) return narrow_as<std::int8_t>(values, out);
  if (type == ElementType::i16) return narrow_as<std::int16_t>(values, out);
  if (type == ElementType::i32) return narrow_as<std::int32_t>(values, out);
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
  return std::nullopt;
}

void widen(std::span<const std::byte> stored, ElementType type, std::span<float> values) {
  check_sizes(stored.size(), values.size(), type);
  if (type == ElementType::i8) return widen_as<std::int8_t>(stored, values);
  if (type == ElementType::i16) return widen_as<std::int16_t>(stored, values);
  if (type == ElementType::i32) return widen_as<std::int32_t>(stored, values);
  if (!values.empty()) std::memcpy(values.data(), stored.data(), stored.size());
}

ElementType narrowest_type(std::span<const float> values) {
  std::vector<std::byte> out;
  ElementType type = ElementType::i8;
  for (; type != ElementType::f32; type = wider(type)) {
    out.resize(values.size() * element_bytes(type));
    if (!narrow(values, type, out)) break;
  }
  return type;
}

ElementType wider(ElementType type) {
  if (type == ElementType::i8) return ElementType::i16;
  return type == ElementType::i16 ? ElementType::i32 : ElementType::f32;
}

}  // namespace tpudist
