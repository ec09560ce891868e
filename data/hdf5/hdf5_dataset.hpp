#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/thread_pool.hpp"
#include "data/hdf5/element_type.hpp"
#include "data/hdf5/hdf5.hpp"

namespace tpudist {

// Chunk size for arrays that are read as a whole.
inline constexpr std::size_t kArrayChunkBytes = 256 << 10;
// In place of a chunk size: a plain dataset, uncompressed, in one piece, written by rows. For
// numbers that do not compress.
inline constexpr std::size_t kPlain = 0;

// A dataset with one or more axes, read and written in chunks of whole rows (first axis). Chunks
// are deflated and inflated outside the HDF5 lock (H5Dwrite_chunk, H5Dread_chunk). Datasets of at
// most 4 KiB are stored compact, as one chunk. Reading is thread-safe, writing is not.
class Hdf5Dataset {
 public:
  Hdf5Dataset() = default;  // no dataset

  // `where` names file and group in messages. A chunk has as many rows as fit into `chunk_bytes`,
  // at least one. The file records this number; readers accept any.
  static Hdf5Dataset create(const Hdf5Id& group, const std::string& name, ElementType type,
                            std::vector<std::int64_t> shape, std::string_view where,
                            std::size_t chunk_bytes = kArrayChunkBytes);
  // Throws DataError if the dataset is missing or stored in a way that `create` never uses.
  static Hdf5Dataset open(const Hdf5Id& group, const std::string& name, std::string_view where);
  // Also throws as check_array.
  static Hdf5Dataset open(const Hdf5Id& group, const std::string& name, ElementType type,
                          const std::vector<std::int64_t>& shape, std::string_view where);

  ElementType type() const { return type_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t rows() const { return shape_[0]; }
  std::size_t row_bytes() const { return row_bytes_; }
  std::int64_t chunk_rows() const { return chunk_rows_; }
  std::int64_t chunks() const { return (rows() + chunk_rows_ - 1) / chunk_rows_; }
  // Rows of chunk i: chunk_rows(), fewer in the last one.
  std::int64_t rows_of_chunk(std::int64_t chunk) const;

  // Deflates and stores the rows of consecutive chunks from `first_chunk` on. The pool deflates;
  // the chunks are stored in order, so that equal data give equal files. `prove`: inflate the
  // deflated bytes first and compare.
  void write_chunks(std::int64_t first_chunk, std::span<const std::span<const std::byte>> chunks,
                    ThreadPool& pool, bool prove = false);
  // Inflates one chunk; `rows` has rows_of_chunk(i) * row_bytes() bytes. Throws DataError with
  // file, dataset and chunk if the chunk is damaged.
  void read_chunk(std::int64_t chunk, std::span<std::byte> rows) const;

  // Writes all rows. The pool deflates.
  void write_all(std::span<const std::byte> rows, ThreadPool& pool);
  // Reads rows first .. first + count - 1. Throws std::out_of_range if rows do not exist, and
  // DataError as read_chunk.
  void read_rows(std::int64_t first, std::int64_t count, std::span<std::byte> out) const;

  // Writes rows of a plain dataset, from `first` on. Throws std::out_of_range if rows do not exist
  // or have another type, and IoError.
  template <typename T>
  void write(std::int64_t first, std::span<const T> values) {
    require_type(element_type<T>());
    write_rows(first, std::as_bytes(values));
  }
  // As read_rows, in elements. Throws std::out_of_range also for another type.
  template <typename T>
  void read(std::int64_t first, std::int64_t count, std::span<T> values) const {
    require_type(element_type<T>());
    read_rows(first, count, std::as_writable_bytes(values));
  }
  template <typename T>
  std::vector<T> read(std::int64_t first, std::int64_t count) const {
    std::vector<T> values(static_cast<std::size_t>(count) * row_bytes_ / sizeof(T));
    read(first, count, std::span<T>(values));
    return values;
  }

  // Bytes of the elements in the file.
  std::uint64_t stored_bytes() const;

  // "FILE:/GROUP/NAME"
  const std::string& where() const { return where_; }

 private:
  void set_sizes(std::size_t chunk_bytes = kArrayChunkBytes);
  void require_type(ElementType type) const;
  void write_rows(std::int64_t first, std::span<const std::byte> rows);
  std::vector<std::byte> deflated(std::int64_t chunk, std::span<const std::byte> rows,
                                  bool prove) const;
  void store(std::int64_t chunk, std::span<const std::byte> stored);
  std::span<const std::byte> stored_chunk(std::int64_t chunk) const;
  [[noreturn]] void throw_damaged(std::int64_t chunk, std::string_view what) const;

  Hdf5Id id_;
  std::string where_;
  ElementType type_ = ElementType::u8;
  std::vector<std::int64_t> shape_;
  std::size_t row_bytes_ = 0;
  std::int64_t chunk_rows_ = 1;
  bool chunked_ = true;
};

// Throws DataError if the dataset has another type or shape; a length of -1 allows any.
void check_array(const Hdf5Dataset& dataset, ElementType type, std::span<const std::int64_t> shape);

// Reads a whole array. `shape` and errors are those of check_array.
template <typename T>
std::vector<T> read_array(const Hdf5Id& group, const std::string& name,
                          std::vector<std::int64_t> shape, std::string_view where) {
  const auto dataset = Hdf5Dataset::open(group, name, element_type<T>(), shape, where);
  return dataset.template read<T>(0, dataset.rows());
}

// Writes a whole plain dataset.
template <typename T>
void write_plain(const Hdf5Id& group, const std::string& name, std::span<const T> values,
                 std::vector<std::int64_t> shape, std::string_view where) {
  Hdf5Dataset::create(group, name, element_type<T>(), std::move(shape), where, kPlain)
      .write(0, values);
}

// Writes texts along one axis, as UTF-8 padded with zero bytes to the length of the longest.
void write_texts(const Hdf5Id& group, const std::string& name, std::span<const std::string> texts,
                 std::string_view where);
// Throws DataError unless there are exactly `count` texts.
std::vector<std::string> read_texts(const Hdf5Id& group, const std::string& name,
                                    std::int64_t count, std::string_view where);

// The bytes of one HDF5 chunk as stored by HDF5's own deflate filter (a zlib stream), compressed
// and read by libdeflate. The functions are thread-safe; each thread has its own compressor and
// decompressor.

// Level 1 packs the codes of a real graph 7.6 times at 420 MB/s; level 6 packs them 9.8 times at 84
// MB/s (codes without any pattern at 14 MB/s). Coding itself already saves a factor of 72.
inline constexpr int kDeflateLevel = 1;

std::vector<std::byte> deflate_chunk(std::span<const std::byte> raw, int level = kDeflateLevel);

// Inflates into `raw` and compares the checksum. Returns false if the chunk is damaged or does not
// have exactly the size of `raw`; the content of `raw` is then undefined.
[[nodiscard]] bool inflate_chunk(std::span<const std::byte> stored, std::span<std::byte> raw);

}  // namespace tpudist
