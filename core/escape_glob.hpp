#pragma once

#include <string>
#include <string_view>

namespace tpudist {

// The glob_match pattern that matches exactly this text.
std::string escape_glob(std::string_view text);

}  // namespace tpudist
