#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// The element description of a .npy file (numpy/lib/format.py): little-endian, C order.
struct NpyHeader {
  char kind = 0;       // 'i', 'u' or 'f'
  int item_bytes = 0;  // 1, 2, 4 or 8
  std::string descr;   // as written, e.g. "<f4"
  std::vector<std::int64_t> shape;
  std::uint64_t elements = 0;    // product of the shape
  std::uint64_t data_bytes = 0;  // elements * item_bytes
};

inline constexpr std::size_t kNpyPreambleBytes = 12;  // enough to find the length of the header

// The number of bytes before the elements, from the first 12 bytes of a file (format versions 1, 2
// and 3). `where` names file and array in messages. Throws DataError.
std::size_t npy_prefix_bytes(std::span<const std::byte> preamble, std::string_view where);

// Parses everything before the elements. Strict: the dictionary must have exactly the keys descr,
// fortran_order and shape. Throws DataError for big-endian, boolean, complex, text, object and
// structured types, Fortran order of more than one axis, negative dimensions and sizes of more than
// 63 bits.
NpyHeader parse_npy_prefix(std::span<const std::byte> prefix, std::string_view where);

}  // namespace tpudist
