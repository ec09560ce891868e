#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tpudist {

// The message of an nlohmann::json exception, shortened to fit in one line. Removed are its number,
// the bytes that were read last (they may be anything), and all after 120 bytes.
// "[json.exception.parse_error.101] parse error at line 2, column 5: syntax error while ..."
// becomes "parse error at line 2, column 5".
std::string json_fault(std::string_view what);

// Objects and lists of the formats of this project lie in each other far less deep than this. nlohmann::json
// writes and copies values recursively, so a text that is deeper must not become one.
inline constexpr std::size_t kDeepestJson = 64;
// How many brackets of a JSON text are open at once, at most; those in strings do not count.
std::size_t json_depth(std::string_view text);

}  // namespace tpudist
