#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/descriptor.hpp"
#include "core/private_folder.hpp"

namespace tpudist {

// A file of a CacheFolder that only this process may write, under the name NAME.new. It gets its
// name by `publish`, and is removed by a destructor without it. A process that is killed leaves it
// behind without a lock, and the next writer of the same name starts it anew.
class NewCacheFile {
 public:
  NewCacheFile(NewCacheFile&&) noexcept = default;
  ~NewCacheFile();

  const Descriptor& descriptor() const { return descriptor_; }
  std::filesystem::path path() const;
  // Renames it over NAME. Throws IoError.
  void publish();

 private:
  friend class CacheFolder;
  NewCacheFile(const PrivateFolder& folder, std::string name, Descriptor descriptor);

  const PrivateFolder* folder_;
  std::string name_;
  Descriptor descriptor_;
};

// Files that the processes of a node share, in a folder of their user alone. A file that is in use is
// locked: it is neither removed nor written. Of the others the one used longest ago is removed
// first when room is wanted. All functions throw IoError.
class CacheFolder {
 public:
  // `most_bytes`: of all files of the folder.
  CacheFolder(const std::filesystem::path& place, std::uint64_t most_bytes);

  std::filesystem::path path_of(const std::string& name) const;

  // Opens a file for reading and locks it, shared, for as long as the descriptor is open; an empty
  // descriptor where there is none. Marks it as used now.
  Descriptor open(const std::string& name) const;

  // Begins a new file; nothing while another process writes it.
  std::optional<NewCacheFile> begin(const std::string& name) const;

  // What changes while another process writes the file: its size and time; 0 where nobody does.
  std::uint64_t progress_of(const std::string& name) const;

  // Removes files that nobody uses until `bytes` more fit below the limit and onto the disk. Throws
  // IoError where they do not.
  void make_room(std::uint64_t bytes) const;

  // Removes all unlocked files except `but`, also those that killed processes left.
  void remove_unused(const std::string& but) const;

  // Removes the file unless somebody else uses it; gives up the caller's own lock on it.
  void remove_if_last(const std::string& name, const Descriptor& file) const;

 private:
  struct Entry;
  std::vector<Entry> entries() const;  // those used longest ago first
  bool remove_if_unused(const Entry& entry) const;

  PrivateFolder folder_;
  std::uint64_t most_bytes_;
};

}  // namespace tpudist
