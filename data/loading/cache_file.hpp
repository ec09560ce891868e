#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "core/array.hpp"
#include "core/descriptor.hpp"
#include "core/thread_pool.hpp"

namespace tpudist {

// The position of an array in a cache file.
struct StoredArray {
  std::uint64_t offset = 0;  // from the start of the file, a multiple of 64
  std::uint64_t count = 0;   // number of elements
};

// Writes a cache file: arrays at any time and from any thread, then a directory with their
// positions, then the header with a hash of everything. Allocates space before writing, and never
// writes through a memory map, so that a full disk, like any other failure, is an IoError.
class CacheFileWriter {
 public:
  // `file`: empty and open for reading and writing; borrowed. `path` is for messages.
  CacheFileWriter(const Descriptor& file, std::filesystem::path path);

  // Allocates `bytes` and returns their offset. Thread-safe.
  std::uint64_t reserve(std::uint64_t bytes);
  // Writes into reserved space. Thread-safe.
  void write(std::uint64_t offset, std::span<const std::byte> bytes);

  // `key` identifies the source of the file. The threads of the pool hash the content.
  void finish(std::uint64_t key, std::span<const std::byte> directory, ThreadPool& pool);

 private:
  const Descriptor& file_;
  std::filesystem::path path_;
  std::atomic<std::uint64_t> end_;
};

// A cache file in memory, shared by all processes that map it. Immutable; threads may share it.
class CacheFile : public std::enable_shared_from_this<CacheFile> {
 public:
  // Maps the file and checks all of its bytes against the header, on the threads of the pool.
  // Throws DataError if the file is damaged or was not made from `key`, and IoError. `file` is
  // borrowed and may be closed.
  static std::shared_ptr<const CacheFile> open(const Descriptor& file,
                                               const std::filesystem::path& path, std::uint64_t key,
                                               ThreadPool& pool);
  ~CacheFile();
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;

  std::uint64_t bytes() const { return bytes_.size(); }
  std::span<const std::byte> directory() const { return directory_; }

  // The array inside the map, which keeps the file mapped. Throws DataError if it is not within the
  // file.
  template <typename T>
  Array<T> array(const StoredArray& place) const {
    const std::byte* begin = bytes_at(place, sizeof(T));
    return {std::span(reinterpret_cast<const T*>(begin), place.count), shared_from_this()};
  }

 private:
  CacheFile() = default;
  const std::byte* bytes_at(const StoredArray& place, std::size_t element) const;

  std::filesystem::path path_;
  std::span<const std::byte> bytes_, directory_;
};

}  // namespace tpudist
