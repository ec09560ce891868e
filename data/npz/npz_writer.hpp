#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/array.hpp"
#include "core/file_system.hpp"

namespace tpudist {

// NumPy's name of a little-endian element type: "<f4", "<i8", "|u1", ...
template <typename T>
requires(std::floating_point<T> || std::integral<T>) std::string npy_descr() {
  static_assert(std::endian::native == std::endian::little);
  const char kind = std::floating_point<T> ? 'f' : std::signed_integral<T> ? 'i' : 'u';
  return std::string(1, sizeof(T) == 1 ? '|' : '<') + kind + std::to_string(sizeof(T));
}

// The header of a C-ordered array in a .npy file of version 1.0, padded to a multiple of 64 bytes
// (numpy/lib/format.py).
std::string npy_header(std::string_view descr, std::span<const std::int64_t> shape);

struct NpzOptions {
  int deflate_level = 6;  // 1 (fast) .. 9; 0: no compression
  bool durable = true;    // false: the file need not survive a crash of the machine
};

// Writes one NPZ file: a zip of .npy arrays as by numpy.savez_compressed, with zip64 if sizes need
// it, and a fixed date, so that equal arrays give equal files. `finish` writes the file, whole or
// not at all. Throws std::invalid_argument for a shape whose product is not the number of elements,
// and for a name that occurs twice. Not thread-safe.
class NpzWriter {
 public:
  explicit NpzWriter(const std::filesystem::path& path, NpzOptions options = {});
  ~NpzWriter();
  NpzWriter(const NpzWriter&) = delete;
  NpzWriter& operator=(const NpzWriter&) = delete;

  // Adds array `name` (".npy" is appended). Copies the values.
  template <typename T>
  void add(std::string_view name, std::vector<std::int64_t> shape, std::span<const T> values) {
    add_array(name, npy_descr<T>(), shape, std::as_bytes(values));
  }
  template <typename T>
  void add(std::string_view name, std::vector<std::int64_t> shape, const std::vector<T>& values) {
    add(name, std::move(shape), std::span<const T>(values));
  }
  template <typename T>
  void add(std::string_view name, std::vector<std::int64_t> shape, const Array<T>& values) {
    add(name, std::move(shape), std::span<const T>(values));
  }

  // Adds an array that is never in memory as a whole: `finish` calls fill(first_row, rows) with
  // consecutive pieces of whole rows of the first axis, once each and in order. `fill` must set
  // every element, and live with its references until then; `finish` passes on its exceptions.
  template <typename T>
  void add_streamed(std::string_view name, std::vector<std::int64_t> shape,
                    std::function<void(std::int64_t first_row, std::span<T> rows)> fill) {
    add_source(name, npy_descr<T>(), sizeof(T), shape,
               [fill = std::move(fill)](std::int64_t first_row, std::span<std::byte> bytes) {
                 // The buffer comes from operator new, aligned for every T.
                 fill(first_row, {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)});
               });
  }

  // Adds a zip member unchanged, under exactly this name, for malformed files in tests.
  void add_raw(std::string_view member, std::span<const std::byte> bytes);
  void add_raw(std::string_view member, std::string_view text) {
    add_raw(member, std::as_bytes(std::span(text.data(), text.size())));
  }

  // Writes the file. Call once, last. Throws IoError.
  void finish();

 private:
  struct Impl;
  using Fill = std::function<void(std::int64_t, std::span<std::byte>)>;
  void add_array(std::string_view name, const std::string& descr,
                 const std::vector<std::int64_t>& shape, std::span<const std::byte> bytes);
  void add_source(std::string_view name, const std::string& descr, std::size_t element_bytes,
                  const std::vector<std::int64_t>& shape, Fill fill);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tpudist
