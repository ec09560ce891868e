#pragma once

#include <string_view>

namespace tpudist {

// The style sheet of a page, without characters that XML would have to escape.
std::string_view page_style();

// Sorts the rows of a table by the column whose name is clicked; once more turns the order around. No
// '<' and no '&', so that the page stays XML.
std::string_view page_script();
// SHA-256 of the script in base64: the page's security policy lets this one script run and no other.
std::string_view page_script_hash();

}  // namespace tpudist
