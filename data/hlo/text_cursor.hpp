#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "data/hlo/hlo_module.hpp"

namespace tpudist {

// A position in an HLO text. Nothing reads beyond the end, where peek() is 0, as for a byte 0.
// Methods that read throw DataError, with the line, for any other text.
class TextCursor {
 public:
  static constexpr std::size_t kDeepest = 200;  // brackets within brackets

  TextCursor(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  [[noreturn]] void fail(std::string_view what) const;
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  std::size_t place() const { return at_; }
  void go_to(std::size_t place) { at_ = place; }
  std::string_view text_since(std::size_t place) const { return text_.substr(place, at_ - place); }

  // Skips space and comments.
  void skip_space();
  // Skips space, then `word` if it comes next.
  bool accept(std::string_view word);
  void expect(std::string_view word);
  // A letter or "_", then letters, digits, "_", "." and "-"; a "->" ends it.
  std::string_view word();
  // A word, with or without a "%" before it.
  std::string_view name();
  // A word followed by "=".
  std::string_view key();
  // An integer without space before it.
  std::int64_t integer();
  // Integers separated by `between`, up to `end`, which is skipped.
  std::vector<std::int64_t> integers(std::string_view between, std::string_view end);
  // Calls read() for each part of {part, part}. There may be no part.
  template <typename Read>
  void parts(const Read& read, std::string_view open = "{", std::string_view close = "}") {
    expect(open);
    if (accept(close)) return;
    do {
      read();
    } while (accept(","));
    expect(close);
  }
  // "..." with escapes.
  void skip_string();
  // Brackets and their content.
  void skip_group();
  // The literal of an array: {{1, 2}, {3, 4}} for dimensions 2 and 2, or 0 for all elements.
  void skip_literal(const std::vector<std::int64_t>& dimensions, std::size_t first = 0);
  // The value of an attribute: up to a comma, a space or a closing bracket that is not in brackets.
  // Skips brackets after a space: mesh['a'=2] {'a'}.
  std::string_view value();

 private:
  void skip_number();
  std::string_view text_, where_;
  std::size_t at_ = 0;
};

// Values in an HLO text on which features depend. Missing parts have XLA's defaults.

inline constexpr std::int64_t kTupleType = 13, kBufferType = 34;  // xla.PrimitiveType

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// f32[2,3]{1,0}, a buffer b(f32[2,3]{1,0}), or a tuple of such shapes.
HloShape read_shape(TextCursor& from, std::size_t depth = 0);
// {size=3x3 stride=2x2 pad=0_1x0_1}
HloWindow read_window(TextCursor& from);
// 0_1x2_3: low and high; a third number is the padding between elements.
void read_padding(TextCursor& from, std::vector<std::int64_t>& low,
                  std::vector<std::int64_t>& high);
// b01f_01io->b01f
HloConvolution read_convolution(TextCursor& from);
// {[0:3], [1:9:2]}
void read_slice(TextCursor& from, HloInstruction& to);

}  // namespace tpudist
