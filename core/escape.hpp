#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tpudist {

// Names of files, and names in files, may hold anything. What follows makes them harmless in a terminal
// and in a table. Pages have escaped() (report/charts/markup.hpp), shells shell_quoted() (core/process.hpp).

// Bytes of the UTF-8 character that a text begins with; 0 where it begins with none.
std::size_t character_length(std::string_view text);

// Whether a terminal or a page would obey a character in place of showing it: control characters,
// line separators, and marks that turn the direction of text.
bool is_control(std::string_view character);

// The text with "?" for each such character and for each byte that is no UTF-8. Those in `kept` stay.
std::string printable(std::string_view text, std::string_view kept = {});

// A field of a CSV file (RFC 4180). Text that a spreadsheet would run as a formula gets a "'" before it.
std::string csv_field(std::string_view text);

}  // namespace tpudist
