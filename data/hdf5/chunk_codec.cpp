#include "data/hdf5/chunk_codec.hpp"

#include <libdeflate.h>

#include <memory>
#include <new>

namespace tpudist {
namespace {

struct Free {
  void operator()(libdeflate_compressor* c) const { libdeflate_free_compressor(c); }
  void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
};

libdeflate_compressor* compressor(int level) {
  thread_local std::unique_ptr<libdeflate_compressor, Free> mine;
  thread_local int mine_level = -1;
  if (level != mine_level) {
    mine.reset(libdeflate_alloc_compressor(level));
    if (!mine) throw std::bad_alloc();
    mine_level = level;
  }
  return mine.get();
}

libdeflate_decompressor* decompressor() {
  thread_local std::unique_ptr<libdeflate_decompressor, Free> mine(libdeflate_alloc_decompressor());
  if (!mine) throw std::bad_alloc();
  return mine.get();
}

}  // namespace

std::vector<std::byte> deflate_chunk(std::span<const std::byte> raw, int level) {
  libdeflate_compressor* const c = compressor(level);
  std::vector<std::byte> stored(libdeflate_zlib_compress_bound(c, raw.size()));
  stored.resize(libdeflate_zlib_compress(c, raw.data(), raw.size(), stored.data(), stored.size()));
  return stored;
}

bool inflate_chunk(std::span<const std::byte> stored, std::span<std::byte> raw) {
  std::size_t used = 0;
  const libdeflate_result result = libdeflate_zlib_decompress_ex(
      decompressor(), stored.data(), stored.size(), raw.data(), raw.size(), &used, nullptr);
  return result == LIBDEFLATE_SUCCESS && used == stored.size();
}

}  // namespace tpudist
