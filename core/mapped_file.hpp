#pragma once

#include <sys/types.h>

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <span>

#include "core/descriptor.hpp"

namespace tpudist {

// A whole file, mapped to be read: parts that are skipped take no memory. Where it shrinks meanwhile,
// which would end the process with SIGBUS, the bytes that are gone read as 0. Threads may read it side
// by side.
class MappedFile {
 public:
  // Throws IoError, and DataError for an empty file or none.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&&) = delete;

  std::span<const char> bytes() const { return {begin_, bytes_}; }
  // Throws DataError where the file was written or cut since it was opened: what was read is then not
  // to be trusted. Call it after reading, also where reading failed.
  void require_unchanged() const;

 private:
  const std::filesystem::path path_;
  Descriptor file_;
  const char* begin_ = nullptr;
  std::size_t bytes_ = 0;
  timespec written_{};
};

}  // namespace tpudist
