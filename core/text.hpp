#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// Edit distance (optimal string alignment): the smallest number of bytes to insert, remove,
// replace, or swap with their neighbour to turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidates that `word` may have meant: the nearest by edit_distance (the first of equals), if
// at most a third of the word's length (at least 1) away; else all that contain `word`, if it has
// at least 3 bytes.
std::vector<std::string> near_names(std::string_view word, std::span<const std::string> candidates);
// "; did you mean A or B?" with near_names; "" without any.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);
// The first of near_names; empty without any.
std::string nearest_of(std::string_view word, std::span<const std::string> candidates);

// Shell-like match of the whole text: `*` any bytes (none or `/` too), `?` one byte, `[abc]` and
// `[a-z]` one byte of a set, `[!a]` one byte outside it. A `[` without `]` stands for itself.
bool glob_match(std::string_view pattern, std::string_view text);
// The pattern that matches exactly this text.
std::string escape_glob(std::string_view text);
bool glob_match_any(std::span<const std::string> patterns, std::string_view text);

// Pieces between separators; "" gives one empty piece, "a,,b" three.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> pieces, std::string_view separator);
// "bert, resnet, ..."
std::string first_of(std::span<const std::string> names, std::size_t most);
// `text` without white space at both ends.
std::string_view trim(std::string_view text);

// True for well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text);

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
