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

// The candidate that `word` was probably meant to be: the nearest by edit_distance, if at most a
// third of the word's length (at least 1) away; the first among equals. Otherwise the first one
// that contains `word`. Empty when there is none.
std::string nearest_of(std::string_view word, std::span<const std::string> candidates);

// Shell-like match of the whole text: `*` any bytes (none or `/` too), `?` one byte, `[abc]` and
// `[a-z]` one byte of a set, `[!a]` one byte outside it. A `[` without `]` stands for itself. Time
// is at most |pattern| x |text|.
bool glob_match(std::string_view pattern, std::string_view text);
// The pattern that matches exactly this text.
std::string escape_glob(std::string_view text);
bool glob_match_any(std::span<const std::string> patterns, std::string_view text);

// Pieces between separators; "" gives one empty piece, "a,,b" three.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> pieces, std::string_view separator);
// `text` without white space at both ends.
std::string_view trim(std::string_view text);

// True for well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text);

}  // namespace tpudist
