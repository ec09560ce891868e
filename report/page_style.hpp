#pragma once

#include <string_view>

namespace tpudist {

// The style sheet of a page, without characters that XML would have to escape.
std::string_view page_style();

}  // namespace tpudist
