#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace tpudist {

// The disk or quota is full. File and folder are otherwise fine, and a later attempt may succeed.
class DiskFullError : public IoError {
 public:
  using IoError::IoError;
};

// Appends to a file, which is created if it does not exist. Throws DiskFullError or IoError. A
// regular file is then cut back to its old length, unless the system refuses even that.
void append_to_file(const std::filesystem::path& path, std::string_view text);

}  // namespace tpudist
