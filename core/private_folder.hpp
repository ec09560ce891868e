#pragma once

#include <filesystem>

#include "core/descriptor.hpp"

namespace tpudist {

// The folder `tpudist-UID` in a place that users of a machine may share, such as /dev/shm, and that
// nobody but the user of this process may enter. It is opened once, and files in it are opened
// relative to it, so that nobody can put another folder in its place.
class PrivateFolder {
 public:
  // Makes what is missing, the last folder with mode 0700. Throws IoError that says why it is not
  // taken: it is a symbolic link or no folder, belongs to another user, or others may enter it.
  explicit PrivateFolder(const std::filesystem::path& place);

  const std::filesystem::path& path() const { return path_; }
  const Descriptor& descriptor() const { return descriptor_; }

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
};

}  // namespace tpudist
