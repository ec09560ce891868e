#pragma once

#include <string>
#include <string_view>

namespace tpudist {

// The pattern of glob_match that matches this text and no other.
std::string exact_pattern(std::string_view text);

}  // namespace tpudist
