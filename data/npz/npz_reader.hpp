#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/npz/npy_header.hpp"
#include "data/npz/zip_archive.hpp"

namespace tpudist {

// A forward stream over the elements of one array of an NPZ file. Memory does not depend on the
// array's size. The read that reaches the last element also checks the member's CRC and end. Must
// not outlive its reader; read only one array of a reader at a time.
class NpzArray {
 public:
  const std::string& name() const { return name_; }
  const NpyHeader& header() const { return header_; }
  const std::vector<std::int64_t>& shape() const { return header_.shape; }
  std::uint64_t remaining() const { return header_.elements - position_; }

  // Fill `out` with the next elements, at most remaining(). Floats: from any numeric type; a value
  // that float32 cannot hold exactly is refused, except NaN and infinities. Integers: from any
  // width; values beyond int64 are refused. Throws DataError with the position of the value.
  void read(std::span<float> out);
  void read(std::span<std::int64_t> out);

  // Returns all remaining elements. Memory grows with the bytes actually read, so a false header
  // cannot request more. Throws as `read`.
  std::vector<float> read_floats();

  // "FILE: NAME[i, j]" of an element, by its C-order index.
  std::string where(std::uint64_t element) const;
  // Throws DataError "FILE: NAME MESSAGE".
  [[noreturn]] void fail(std::string_view message) const;

 private:
  friend class NpzReader;
  NpzArray(ZipArchive::Stream stream, std::uint64_t member_bytes, std::string file,
           std::string name);
  void read_bytes(std::span<std::byte> out);
  void check_end();
  template <typename T>
  void read_converted(std::span<T> out, std::string_view complaint);

  ZipArchive::Stream stream_;
  std::string file_, name_;
  NpyHeader header_;
  std::uint64_t position_ = 0;
};

// The arrays of one untrusted NPZ file. Not thread-safe.
class NpzReader {
 public:
  // Throws IoError when the file cannot be opened, DataError when it is not a valid zip file.
  explicit NpzReader(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return archive_.path(); }
  bool contains(std::string_view name) const;
  std::vector<std::string> names() const;
  // Checks the array's header, and its size against the zip member's. Throws DataError, also if
  // there is no such array.
  NpzArray open(std::string_view name) const;

 private:
  ZipArchive archive_;
};

}  // namespace tpudist
