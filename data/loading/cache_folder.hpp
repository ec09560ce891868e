#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/descriptor.hpp"

namespace tpudist {

// A new file of a CacheFolder, named NAME.new, that only this process may write. `publish` renames
// the file to NAME; without `publish` the destructor removes it. A killed process leaves the file
// unlocked, and the next writer of that name starts again.
class NewCacheFile {
 public:
  NewCacheFile(NewCacheFile&&) noexcept = default;
  ~NewCacheFile();

  const Descriptor& descriptor() const { return descriptor_; }
  std::filesystem::path path() const;
  // Renames the file to NAME, replacing an old file. Throws IoError.
  void publish();

 private:
  friend class CacheFolder;
  NewCacheFile(const PrivateFolder& folder, std::string name, Descriptor descriptor);

  const PrivateFolder* folder_;
  std::string name_;
  Descriptor descriptor_;
};

// Files that the processes of a node share, in a folder that only their user may enter. A file in
// use is locked, so nobody removes or writes it. If space is needed, the least recently used
// unlocked file is removed first. All functions throw IoError.
class CacheFolder {
 public:
  // `most_bytes`: limit for all files of the folder in total.
  CacheFolder(const std::filesystem::path& place, std::uint64_t most_bytes);

  std::filesystem::path path_of(const std::string& name) const;

  // Opens a file for reading, with a shared lock as long as the descriptor is open, and marks it as
  // used now. Returns an empty descriptor if there is no such file.
  Descriptor open(const std::string& name) const;

  // Begins a new file; nothing while another process writes it.
  std::optional<NewCacheFile> begin(const std::string& name) const;

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
