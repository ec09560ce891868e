#pragma once

#include <string>
#include <string_view>

namespace tpudist {

// The message of an nlohmann::json exception, shortened to fit in one line. Removed are its number,
// the bytes that were read last (they may be anything), and all after 120 bytes.
// "[json.exception.parse_error.101] parse error at line 2, column 5: syntax error while ..."
// becomes "parse error at line 2, column 5".
std::string json_fault(std::string_view what);

}  // namespace tpudist
