#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "data/hdf5/element_type.hpp"

namespace tpudist {

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
