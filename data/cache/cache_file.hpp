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

// Where an array lies in a cache file.
struct StoredArray {
  std::uint64_t offset = 0;  // from the file's beginning, a multiple of 64
  std::uint64_t count = 0;   // elements
};

// Writes a cache file: arrays at any time and from any thread, then a directory that tells where they
// are, then the header with the hash of it all. Room is allocated before it is written and nothing is
// stored through a map, so that a full disk is an IoError, as all failures are.
class CacheFileWriter {
 public:
  // `file`: empty and open for reading and writing; borrowed. `path` is for messages.
  CacheFileWriter(const Descriptor& file, std::filesystem::path path);

  // Allocates `bytes` and returns where they begin. Thread-safe.
  std::uint64_t reserve(std::uint64_t bytes);
  // Writes into room that was reserved. Thread-safe.
  void write(std::uint64_t offset, std::span<const std::byte> bytes);

  // `key` says what the file was made from. Hashes what was written on the threads of the pool.
  void finish(std::uint64_t key, std::span<const std::byte> directory, ThreadPool& pool);

 private:
  const Descriptor& file_;
  std::filesystem::path path_;
  std::atomic<std::uint64_t> end_;
};

// A cache file in memory, shared by all processes that map it. Immutable; threads may share it.
class CacheFile : public std::enable_shared_from_this<CacheFile> {
 public:
  // Checks the file against its header, every byte, by reading it on the threads of the pool, and
  // maps it. Throws DataError where the file was not made from `key` or is damaged, else IoError.
  // `file` is borrowed and may be closed.
  static std::shared_ptr<const CacheFile> open(const Descriptor& file,
                                               const std::filesystem::path& path, std::uint64_t key,
                                               ThreadPool& pool);
  ~CacheFile();
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;

  std::uint64_t bytes() const { return bytes_.size(); }
  std::span<const std::byte> directory() const { return directory_; }

  // The array in place; it keeps the file mapped. Throws DataError where it is not within the file.
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
