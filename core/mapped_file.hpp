#pragma once

#include <sys/types.h>

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <span>

#include "core/descriptor.hpp"

namespace tpudist {

// A whole file, mapped for reading: skipped parts take no memory. If the file shrinks meanwhile,
// the lost bytes read as 0 and do not end the process with SIGBUS. Several threads may read.
class MappedFile {
 public:
  // Throws IoError, and DataError for an empty file or one that is not regular.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&&) = delete;

  std::span<const char> bytes() const { return {begin_, bytes_}; }
  // Throws DataError if the file was written or cut since it was opened: the bytes read may be
  // wrong. Call it after reading, even if reading failed.
  void require_unchanged() const;

 private:
  const std::filesystem::path path_;
  Descriptor file_;
  const char* begin_ = nullptr;
  std::size_t bytes_ = 0;
  timespec written_{};
};

}  // namespace tpudist
