#pragma once

#include <string_view>

namespace tpudist {

// The version of this build, e.g. "0.3.0".
std::string_view version();

}  // namespace tpudist
