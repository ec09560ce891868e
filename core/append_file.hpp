#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace tpudist {

// There is no room for what is to be written: no other fault of file or folder, and one that may pass.
class DiskFullError : public IoError {
 public:
  using IoError::IoError;
};

// Appends to a file, which is made if it is not there. Throws DiskFullError or IoError; a regular file
// is then as it was before, unless the system refuses even that.
void append_to_file(const std::filesystem::path& path, std::string_view text);

}  // namespace tpudist
