#pragma once

#include <string>
#include <string_view>

namespace tpudist {

// Escapes text for the content of an XML or HTML element, or for an attribute in double quotes:
// `&`, `<`, `>`, `"` and `'` become references. Characters that XML forbids, and characters that
// are invisible (as for printable()), become U+FFFD.
std::string escaped(std::string_view text);

// A coordinate in pixels with at most one decimal, "12", "12.5"; 0 if not finite.
std::string pixels(double value);

// A text cut to at most `most` characters (of UTF-8), with an ellipsis at the end if it was cut.
std::string shortened(std::string_view text, std::size_t most);

}  // namespace tpudist
