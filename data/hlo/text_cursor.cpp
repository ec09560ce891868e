#include "data/hlo/text_cursor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

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

using List = std::vector<std::int64_t>;

// xla.PrimitiveType by its name in text.
constexpr std::pair<std::string_view, std::int64_t> kTypes[] = {
    {"pred", 1},        {"s8", 2},
    {"s16", 3},         {"s32", 4},
    {"s64", 5},         {"u8", 6},
    {"u16", 7},         {"u32", 8},
    {"u64", 9},         {"f16", 10},
    {"f32", 11},        {"f64", 12},
    {"opaque", 14},     {"c64", 15},
    {"bf16", 16},       {"token", 17},
    {"c128", 18},       {"f8e5m2", 19},
    {"f8e4m3fn", 20},   {"s4", 21},
    {"u4", 22},         {"f8e4m3b11fnuz", 23},
    {"f8e5m2fnuz", 24}, {"f8e4m3fnuz", 25},
    {"s2", 26},         {"u2", 27},
    {"f8e4m3", 28},     {"f8e3m4", 29},
    {"s1", 30},         {"u1", 31},
    {"f4e2m1fn", 32},   {"f8e8m0fnu", 33}};
// A dimension without a bound, as XLA stores it.
constexpr std::int64_t kUnbounded = INT64_MIN;

// The minor-to-major list of a layout. Skips tiles and memory spaces after a ":".
List read_layout(TextCursor& from, std::size_t rank) {
  List order;
  const std::size_t begin = from.place();
  from.expect("{");
  from.skip_space();
  while (is_digit(from.peek())) {
    order.push_back(from.integer());
    if (!from.accept(",")) break;
    from.skip_space();
  }
  List sorted = order;
  std::ranges::sort(sorted);
  bool fits = order.size() == rank;
  for (std::size_t d = 0; fits && d < rank; ++d) fits = sorted[d] == static_cast<std::int64_t>(d);
  if (!fits) from.fail(fmt::format("a layout of {} dimensions does not order them", rank));
  if (from.accept("}")) return order;
  if (!from.accept(":")) from.fail("expected \"}\" or \":\" in a layout");
  from.go_to(begin);
  from.skip_group();
  return order;
}

// 3x1x2
List read_sizes(TextCursor& from) {
  List sizes;
  do {
    sizes.push_back(from.integer());
  } while (from.accept("x"));
  return sizes;
}

// The places of two letters and of the digits in a label such as b01f.
void read_label(TextCursor& from, std::string_view label, std::string_view letters,
                std::int64_t& first, std::int64_t& second, List& spatial) {
  List digits(label.size(), -1);
  std::array<std::int64_t, 2> places{-1, -1};
  std::size_t count = 0;
  for (std::size_t d = 0; d < label.size(); ++d) {
    const std::size_t letter = letters.find(label[d]);
    if (letter != std::string_view::npos && places[letter] < 0) {
      places[letter] = static_cast<std::int64_t>(d);
    } else if (is_digit(label[d]) && static_cast<std::size_t>(label[d] - '0') < label.size()) {
      digits[label[d] - '0'] = static_cast<std::int64_t>(d);
      ++count;
    } else if (label[d] != '?') {
      from.fail(fmt::format("the label {} of a convolution", label));
    }
  }
  digits.resize(count);
  if (places[0] < 0 || places[1] < 0 || std::ranges::count(digits, -1) != 0)
    from.fail(fmt::format("the label {} of a convolution lacks a dimension", label));
  first = places[0];
  second = places[1];
  spatial = std::move(digits);
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

HloShape read_shape(TextCursor& from, std::size_t depth) {
  HloShape shape;
  if (depth > TextCursor::kDeepest)
    from.fail(fmt::format("more than {} tuples within tuples", TextCursor::kDeepest));
  from.skip_space();
  if (from.peek() == '(') {
    shape.element_type = kTupleType;
    const auto read = [&] {
      read_shape(from, depth + 1);
      ++shape.tuple_shapes;
    };
    from.parts(read, "(", ")");
    return shape;
  }
  const std::string_view type = from.word();
  if (type == "b" && from.accept("(")) {
    const std::int64_t content = read_shape(from, depth + 1).element_type;
    if (content == kTupleType || content == kBufferType) from.fail("a buffer holds no array");
    from.expect(")");
    shape.element_type = kBufferType;
    shape.tuple_shapes = 1;  // as in its proto
    return shape;
  }
  const auto* known =
      std::ranges::find(kTypes, type, &std::pair<std::string_view, std::int64_t>::first);
  if (known == std::end(kTypes)) from.fail(fmt::format("{} is no element type", type));
  shape.element_type = known->second;
  from.expect("[");
  if (!from.accept("]")) {
    do {
      from.skip_space();
      if (from.accept("?")) {
        shape.dimensions.push_back(kUnbounded);
        continue;
      }
      from.accept("<=");
      shape.dimensions.push_back(from.integer());
      if (shape.dimensions.back() < 0) from.fail("a dimension is negative");
    } while (from.accept(","));
    from.expect("]");
  }
  const std::size_t rank = shape.dimensions.size();
  // With a space before it, the brace begins a computation.
  if (from.peek() == '{') {
    shape.minor_to_major = read_layout(from, rank);
  } else {
    for (std::size_t d = rank; d-- > 0;)
      shape.minor_to_major.push_back(static_cast<std::int64_t>(d));
  }
  return shape;
}

void read_padding(TextCursor& from, List& low, List& high) {
  do {
    low.push_back(from.integer());
    from.expect("_");
    high.push_back(from.integer());
    if (from.accept("_")) from.integer();
  } while (from.accept("x"));
}

HloWindow read_window(TextCursor& from) {
  HloWindow window;
  from.expect("{");
  while (!from.accept("}")) {
    const std::string_view field = from.key();
    if (field == "size") {
      window.size = read_sizes(from);
    } else if (field == "stride") {
      window.stride = read_sizes(from);
    } else if (field == "pad") {
      read_padding(from, window.padding_low, window.padding_high);
    } else if (field == "lhs_dilate") {
      window.base_dilation = read_sizes(from);
    } else if (field == "rhs_dilate") {
      window.window_dilation = read_sizes(from);
    } else if (field == "rhs_reversal") {
      window.reversed = read_sizes(from);
    } else {
      from.fail(fmt::format("{} is no field of a window", field));
    }
  }
  const auto fill = [&](List& list, std::int64_t absent) {
    if (list.empty()) list.assign(window.size.size(), absent);
    if (list.size() != window.size.size()) from.fail("a window's lists have different lengths");
  };
  fill(window.stride, 1);
  fill(window.padding_low, 0);
  fill(window.padding_high, 0);
  fill(window.window_dilation, 1);
  fill(window.base_dilation, 1);
  fill(window.reversed, 0);
  for (std::int64_t& reversed : window.reversed) reversed = reversed != 0;
  return window;
}

HloConvolution read_convolution(TextCursor& from) {
  HloConvolution of;
  const std::string_view labels = from.value();
  const std::size_t kernel = labels.find('_'), output = labels.find("->");
  if (kernel == std::string_view::npos || output == std::string_view::npos || output < kernel)
    from.fail("dim_labels are not of the form b01f_01io->b01f");
  read_label(from, labels.substr(0, kernel), "bf", of.input_batch, of.input_feature,
             of.input_spatial);
  read_label(from, labels.substr(kernel + 1, output - kernel - 1), "io", of.kernel_input_feature,
             of.kernel_output_feature, of.kernel_spatial);
  List output_spatial;
  read_label(from, labels.substr(output + 2), "bf", of.output_batch, of.output_feature,
             output_spatial);
  if (of.kernel_spatial.size() != of.input_spatial.size() ||
      output_spatial.size() != of.input_spatial.size())
    from.fail(
        fmt::format("the labels {} of a convolution have different numbers of dimensions", labels));
  return of;
}

void read_slice(TextCursor& from, HloInstruction& to) {
  from.parts([&] {
    from.expect("[");
    const List bounds = from.integers(":", "]");
    if (bounds.size() != 2 && bounds.size() != 3) from.fail("a slice is [start:limit:stride]");
    to.slice_start.push_back(bounds[0]);
    to.slice_limit.push_back(bounds[1]);
    to.slice_stride.push_back(bounds.size() == 3 ? bounds[2] : 1);
  });
}

}  // namespace tpudist
