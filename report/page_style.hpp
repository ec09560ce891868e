#pragma once

#include <string_view>

namespace tpudist {

// The style sheet of a page, without characters that XML would need to escape.
std::string_view page_style();

// Sorts the rows of a table by the clicked column; a second click reverses the order. Has no '<'
// and no '&', so that the page stays XML.
std::string_view page_script();
// SHA-256 of the script in base64: the page's security policy allows only this script.
std::string_view page_script_hash();

}  // namespace tpudist
