#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tpudist {

// A place in a text of HLO. Nothing reads behind its end: there peek() is 0, as it is for a byte 0. All
// but peek(), at_end() and go_to() throw DataError, with the line, where the text has something else.
class TextCursor {
 public:
  static constexpr std::size_t kDeepest = 200;  // brackets within brackets

  TextCursor(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  [[noreturn]] void fail(std::string_view what) const;
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  std::size_t place() const { return at_; }
  void go_to(std::size_t place) { at_ = place; }

  // Skips space and comments.
  void skip_space();
  // Skips space, then `word` where it comes next.
  bool accept(std::string_view word);
  void expect(std::string_view word);
  // A letter or "_", then letters, digits, "_", "." and "-"; a "->" ends it.
  std::string_view word();
  // The same, with a "%" before it or without.
  std::string_view name();
  // A word with a "=" at its end.
  std::string_view key();
  // What follows, without space before it.
  std::int64_t integer();
  // Integers with `between` between them, up to `end`, which is skipped.
  std::vector<std::int64_t> integers(std::string_view between, std::string_view end);
  // Calls read() for each part of {part, part}, which may be empty.
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
  // Brackets and all in them.
  void skip_group();
  // The literal of an array: {{1, 2}, {3, 4}} for dimensions of 2 and 2, or 0 for all of its elements.
  void skip_literal(const std::vector<std::int64_t>& dimensions, std::size_t first = 0);
  // The value of an attribute: up to a comma, a space or a closing bracket that is not in brackets.
  // Brackets behind a space are skipped: mesh['a'=2] {'a'}.
  std::string_view value();

 private:
  void skip_number();
  std::string_view text_, where_;
  std::size_t at_ = 0;
};

}  // namespace tpudist
