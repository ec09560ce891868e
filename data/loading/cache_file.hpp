#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/array.hpp"
#include "core/descriptor.hpp"
#include "core/thread_pool.hpp"

namespace tpudist {

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
  // The position of an array.
  struct Place {
    std::uint64_t offset = 0;  // from the start of the file, a multiple of 64
    std::uint64_t count = 0;   // number of elements
  };

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
  Array<T> array(const Place& place) const {
    const std::byte* begin = bytes_at(place, sizeof(T));
    return {std::span(reinterpret_cast<const T*>(begin), place.count), shared_from_this()};
  }

 private:
  CacheFile() = default;
  const std::byte* bytes_at(const Place& place, std::size_t element) const;

  std::filesystem::path path_;
  std::span<const std::byte> bytes_, directory_;
};

// Files that the processes of a node share, in a folder that only their user may enter. A file in
// use is locked, so nobody removes or writes it. If space is needed, the least recently used
// unlocked file is removed first. All functions throw IoError.
class CacheFolder {
 public:
  // A new file, named NAME.new, that only this process may write. `publish` renames it to NAME;
  // without `publish` the destructor removes it. A killed process leaves the file unlocked, and the
  // next writer of that name starts again.
  class NewFile {
   public:
    NewFile(NewFile&&) noexcept = default;
    ~NewFile();

    const Descriptor& descriptor() const { return descriptor_; }
    std::filesystem::path path() const;
    // Renames the file to NAME, replacing an old file. Throws IoError.
    void publish();

   private:
    friend class CacheFolder;
    NewFile(const PrivateFolder& folder, std::string name, Descriptor descriptor);

    const PrivateFolder* folder_;
    std::string name_;
    Descriptor descriptor_;
  };

  // `most_bytes`: limit for all files of the folder in total.
  CacheFolder(const std::filesystem::path& place, std::uint64_t most_bytes);

  std::filesystem::path path_of(const std::string& name) const;

  // Opens a file for reading, with a shared lock as long as the descriptor is open, and marks it as
  // used now. Returns an empty descriptor if there is no such file.
  Descriptor open(const std::string& name) const;

  // Begins a new file; nothing while another process writes it.
  std::optional<NewFile> begin(const std::string& name) const;

  // A number, from size and time, that changes while another process writes the file; 0 if nobody
  // writes.
  std::uint64_t progress_of(const std::string& name) const;

  // Removes unused files until `bytes` more fit below the limit and on the disk. Throws IoError if
  // they do not fit.
  void make_room(std::uint64_t bytes) const;

  // Removes all unlocked files except `but`, including those of killed processes.
  void remove_unused(const std::string& but) const;

  // Removes the file unless another process uses it, and releases the caller's lock.
  void remove_if_last(const std::string& name, const Descriptor& file) const;

 private:
  struct Entry;
  std::vector<Entry> entries() const;  // the least recently used first
  bool remove_if_unused(const Entry& entry) const;

  PrivateFolder folder_;
  std::uint64_t most_bytes_;
};

}  // namespace tpudist
