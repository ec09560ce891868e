#pragma once

#include <filesystem>
#include <string_view>

namespace tpudist {

// Appends to a file, which is created if it does not exist. Throws IoError. A regular file is then
// cut back to its old length, unless the system refuses even that.
void append_to_file(const std::filesystem::path& path, std::string_view text);

}  // namespace tpudist
