#pragma once

#include <filesystem>

#include "core/descriptor.hpp"

namespace tpudist {

// The folder `tpudist-UID` in a place that users of a machine share, such as /dev/shm. Only the
// user of this process may enter it. It is opened once, and its files are opened relative to it, so
// that nobody can replace it by another folder.
class PrivateFolder {
 public:
  // Creates missing folders, the last one with mode 0700. Throws IoError with the reason when the
  // folder is not safe: a symbolic link, not a folder, owned by another user, or open to others.
  explicit PrivateFolder(const std::filesystem::path& place);

  const std::filesystem::path& path() const { return path_; }
  const Descriptor& descriptor() const { return descriptor_; }

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
};

}  // namespace tpudist
