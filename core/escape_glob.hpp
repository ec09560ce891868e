#pragma once

#include <string>
#include <string_view>

namespace tpudist {

// The pattern of glob_match that matches this text and no other.
std::string escape_glob(std::string_view text);

}  // namespace tpudist
