#pragma once

#include <string>

namespace tpudist {

// Logs a warning that this process has not logged before in the same words. Any thread.
void warn_once(const std::string& text);

}  // namespace tpudist
