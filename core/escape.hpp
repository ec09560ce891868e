#pragma once

#include <string>
#include <string_view>

namespace tpudist {

// Names of files, and names in files, may hold anything.

// Replaces with `mark` each character that a terminal or a page would obey, not show (control
// characters, line separators, marks of text direction), and each byte that is not UTF-8.
// Characters in `kept` stay.
std::string printable(std::string_view text, std::string_view kept = {},
                      std::string_view mark = "?");

// A field of a CSV file (RFC 4180). A "'" is put before text that a spreadsheet would run as a
// formula.
std::string csv_field(std::string_view text);

}  // namespace tpudist
