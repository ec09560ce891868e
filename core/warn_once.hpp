#pragma once

#include <string>

namespace tpudist {

// Logs a warning unless this process has logged the same text before. Any thread.
void warn_once(const std::string& text);

}  // namespace tpudist
