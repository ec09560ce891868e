#include "data/hlo/text_cursor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "core/error.hpp"

namespace tpudist {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_name(char c) {
  return begins_name(c) || (c >= '0' && c <= '9') || c == '.' || c == '-';
}

bool is_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text == "inf" || text == "nan" || text == "true" || text == "false") return true;
  double value = 0;
  const char* end = text.data() + text.size();
  return !text.starts_with('-') && std::from_chars(text.data(), end, value).ptr == end &&
         !text.empty();
}

}  // namespace

void TextCursor::fail(std::string_view what) const {
  const auto line = 1 + std::ranges::count(text_.substr(0, at_), '\n');
  throw DataError(fmt::format("{}: line {}: {}", where_, line, what));
}

void TextCursor::skip_space() {
  while (!at_end()) {
    if (is_space(text_[at_])) {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_.substr(at_, 2) == "/*") {
      const std::size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) fail("a comment has no end");
      at_ = end + 2;
    } else {
      return;
    }
  }
}

bool TextCursor::accept(std::string_view word) {
  skip_space();
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

void TextCursor::expect(std::string_view word) {
  if (!accept(word)) fail(fmt::format("expected \"{}\"", word));
}

std::string_view TextCursor::word() {
  skip_space();
  const std::size_t begin = at_;
  if (!begins_name(peek())) fail("expected a name");
  while (is_name(peek()) && text_.substr(at_, 2) != "->") ++at_;
  return text_.substr(begin, at_ - begin);
}

std::string_view TextCursor::name() {
  if (accept("%") && !begins_name(peek())) fail("expected a name behind \"%\"");
  return word();
}

std::string_view TextCursor::key() {
  const std::string_view key = word();
  if (peek() != '=') fail(fmt::format("expected \"=\" right behind {}", key));
  ++at_;
  return key;
}

std::int64_t TextCursor::integer() {
  std::int64_t value = 0;
  const char* end = text_.data() + text_.size();
  const auto [behind, error] = std::from_chars(text_.data() + at_, end, value);
  if (error != std::errc()) fail("expected an integer of 64 bits");
  at_ = static_cast<std::size_t>(behind - text_.data());
  return value;
}

std::vector<std::int64_t> TextCursor::integers(std::string_view between, std::string_view end) {
  std::vector<std::int64_t> list;
  if (accept(end)) return list;
  do {
    skip_space();
    list.push_back(integer());
  } while (accept(between));
  expect(end);
  return list;
}

void TextCursor::skip_string() {
  if (peek() != '"') fail("expected a string");
  for (++at_; peek() != '"'; ++at_) {
    if (at_end()) fail("a string has no end");
    if (peek() == '\\') ++at_;
  }
  ++at_;
}

void TextCursor::skip_group() {
  std::string open;
  do {
    skip_space();
    if (at_end()) fail("a bracket is not closed");
    const char c = peek();
    if (c == '"') {
      skip_string();
      continue;
    }
    if (c == '(' || c == '[' || c == '{') {
      open += c == '(' ? ')' : c == '[' ? ']' : '}';
      if (open.size() > kDeepest) fail(fmt::format("more than {} brackets within", kDeepest));
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.back() != c) fail(fmt::format("expected \"{}\"", open.back()));
      open.pop_back();
    }
    ++at_;
  } while (!open.empty());
}

void TextCursor::skip_number() {
  skip_space();
  const std::size_t begin = at_;
  while (is_name(peek()) || peek() == '+') ++at_;
  const std::string_view text = text_.substr(begin, at_ - begin);
  if (!is_number(text)) fail(fmt::format("expected a number, not \"{}\"", text));
  if (text.ends_with("nan") && peek() == '(') skip_group();  // its bits
}

void TextCursor::skip_literal(const std::vector<std::int64_t>& dimensions, std::size_t first) {
  if (dimensions.size() > kDeepest)
    fail(fmt::format("a literal of more than {} dimensions", kDeepest));
  skip_space();
  if (first == dimensions.size() || (first == 0 && peek() != '{')) {
    if (!accept("(")) return skip_number();
    skip_number();  // of a complex number
    expect(",");
    skip_number();
    return expect(")");
  }
  expect("{");
  if (accept("...")) return expect("}");
  const auto skip_commas = [this] {
    while (accept(",")) continue;
  };
  std::int64_t count = 0;
  for (skip_commas(); !accept("}"); skip_commas()) {
    skip_literal(dimensions, first + 1);
    ++count;
  }
  if (count != dimensions[first])
    fail(fmt::format("{} elements in a literal where the shape has {}", count, dimensions[first]));
}

std::string_view TextCursor::value() {
  skip_space();
  const std::size_t begin = at_;
  for (char c = peek(); !at_end() && !is_space(c) && c != ',' && c != ')' && c != '}'; c = peek()) {
    if (c == '"') {
      skip_string();
    } else if (c == '(' || c == '[' || c == '{') {
      skip_group();
    } else {
      ++at_;
    }
  }
  if (at_ == begin) fail("a value is missing");
  const std::string_view value = text_.substr(begin, at_ - begin);
  for (skip_space(); peek() == '{' || peek() == '[' || peek() == '('; skip_space()) skip_group();
  return value;
}

}  // namespace tpudist
