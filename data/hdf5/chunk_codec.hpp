#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tpudist {

// The bytes of one HDF5 chunk as HDF5's own deflate filter stores them (a zlib stream), made and
// read by libdeflate. The functions are thread-safe; each thread has a compressor and a
// decompressor of its own.

// Level 1 packs the codes of a real graph 7.6 times at 420 MB/s, where level 6 packs them 9.8 times
// at 84 MB/s (and codes without any pattern at 14 MB/s): beside the 72 times of the codes
// themselves the rest is small change.
inline constexpr int kDeflateLevel = 1;

std::vector<std::byte> deflate_chunk(std::span<const std::byte> raw, int level = kDeflateLevel);

// Inflates into `raw` and compares the checksum. False when the chunk is damaged or does not have
// exactly the size of `raw`, whose contents are undefined then.
[[nodiscard]] bool inflate_chunk(std::span<const std::byte> stored, std::span<std::byte> raw);

}  // namespace tpudist
