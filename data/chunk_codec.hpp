#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace tpudist {

// The bytes of one HDF5 chunk as HDF5's own deflate filter stores them (a zlib stream), made and
// read by libdeflate. The functions are thread-safe; each thread has a compressor and a
// decompressor of its own.

inline constexpr int kDeflateLevel = 6;

std::vector<std::byte> deflate_chunk(std::span<const std::byte> raw, int level = kDeflateLevel);

// Inflates into `raw`, which must have exactly the chunk's size. Throws DataError "WHERE: ..."
// otherwise.
void inflate_chunk(std::span<const std::byte> stored, std::span<std::byte> raw,
                   std::string_view where);

}  // namespace tpudist
