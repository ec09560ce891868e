#pragma once

#include <string>
#include <string_view>

namespace tpudist {

// Names of files, and names in files, may hold anything.

// The text with `mark` for all that a terminal or a page would obey in place of showing it (control
// characters, line separators, marks that turn the direction of text), and for each byte that is no
// UTF-8. Characters in `kept` stay.
std::string printable(std::string_view text, std::string_view kept = {},
                      std::string_view mark = "?");

// A field of a CSV file (RFC 4180). Text that a spreadsheet would run as a formula gets a "'" before
// it.
std::string csv_field(std::string_view text);

}  // namespace tpudist
