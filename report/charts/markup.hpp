#pragma once

#include <string>
#include <string_view>

namespace tpudist {

// Text as the content of an XML or HTML element, or as an attribute in double quotes: `&`, `<`, `>`, `"`
// and `'` as references. What cannot stand in such a document (control characters, bytes that are no
// UTF-8) becomes U+FFFD.
std::string escaped(std::string_view text);

// A coordinate in pixels with one decimal at most, "12", "12.5"; 0 for what is not finite.
std::string pixels(double value);

// A text of at most `most` characters (of UTF-8), with an ellipsis at the end where it was cut.
std::string shortened(std::string_view text, std::size_t most);

}  // namespace tpudist
