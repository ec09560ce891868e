#pragma once

#include <string>
#include <string_view>

namespace tpudist {

// What an exception of nlohmann::json says, as part of one line: without its number, without the bytes
// that were read last, which may be anything, and cut behind 120 bytes.
// "[json.exception.parse_error.101] parse error at line 2, column 5: syntax error while ..." becomes
// "parse error at line 2, column 5".
std::string json_fault(std::string_view what);

}  // namespace tpudist
