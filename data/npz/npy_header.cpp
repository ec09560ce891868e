#include "data/npz/npy_header.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <optional>

#include "core/error.hpp"
#include "core/numbers.hpp"

namespace tpudist {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = 65536;  // real ones take 118 bytes
constexpr std::size_t kMaxAxes = 32;       // NumPy's own limit

[[noreturn]] void fail(std::string_view where, std::string_view what) {
  throw DataError(fmt::format("{}: {}", where, what));
}

// A parser of the one dictionary literal in a header.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  NpyHeader parse() {
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        once(descr_.has_value(), key);
        if (peek() == '[') fail(where_, "has a structured dtype; only plain numbers are read");
        descr_ = quoted();
      } else if (key == "fortran_order") {
        once(fortran_.has_value(), key);
        fortran_ = boolean();
      } else if (key == "shape") {
        once(shape_.has_value(), key);
        shape_ = tuple();
      } else {
        fail(where_, fmt::format("unknown key '{}' in the .npy header", key));
      }
      if (!accept(',') && peek() != '}') bad();
    }
    skip_space();
    if (at_ != text_.size()) bad();
    if (!descr_ || !fortran_ || !shape_) {
      fail(where_, "the .npy header lacks descr, fortran_order or shape");
    }
    return result();
  }

 private:
  NpyHeader result() {
    NpyHeader header;
    header.descr = *descr_;
    header.shape = *shape_;
    set_type(header);
    if (*fortran_ && header.shape.size() > 1) {
      fail(where_, "is in Fortran order; save it in C order (numpy.ascontiguousarray)");
    }
    std::uint64_t elements = 1;
    for (const std::int64_t dim : header.shape) {
      const auto product = checked_mul(elements, static_cast<std::uint64_t>(dim));
      if (!product || *product > kMaxBytes) fail(where_, "the shape is too large");
      elements = *product;
    }
    header.elements = elements;
    const auto bytes = checked_mul(elements, static_cast<std::uint64_t>(header.item_bytes));
    if (!bytes || *bytes > kMaxBytes) fail(where_, "the shape is too large");
    header.data_bytes = *bytes;
    return header;
  }

  void set_type(NpyHeader& header) {
    const std::string& descr = header.descr;
    const auto refuse = [&](std::string_view why) {
      fail(where_, fmt::format("has dtype '{}'; {}", descr, why));
    };
    if (descr.find('O') != std::string::npos) refuse("object arrays are not read");
    if (!descr.empty() && descr[0] == '>') refuse("big-endian arrays are not read");
    if (descr.size() != 3 || (descr[0] != '<' && descr[0] != '|')) {
      refuse("only integers, float16, float32 and float64 are read");
    }
    header.kind = descr[1];
    header.item_bytes = descr[2] - '0';
    const int bytes = header.item_bytes;
    const bool integer = (header.kind == 'i' || header.kind == 'u') &&
                         (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
    const bool real = header.kind == 'f' && (bytes == 2 || bytes == 4 || bytes == 8);
    if (!integer && !real) refuse("only integers, float16, float32 and float64 are read");
    if (descr[0] == '|' && bytes != 1) refuse("the byte order is missing");
  }

  void once(bool given, const std::string& key) {
    if (given) fail(where_, fmt::format("key '{}' occurs twice in the .npy header", key));
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      if (values.size() == kMaxAxes) fail(where_, "the shape has too many axes");
      values.push_back(dimension());
      if (!accept(',') && (peek() != ')' || values.size() == 1)) bad();  // (5) is no tuple
    }
    return values;
  }

  std::int64_t dimension() {
    skip_space();
    if (peek() == '-') fail(where_, "the .npy header has a negative dimension");
    std::uint64_t value = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = value * 10 + static_cast<std::uint64_t>(text_[at_] - '0');
      if (value > kMaxBytes) fail(where_, "the shape is too large");
    }
    if (at_ == begin) bad();
    return static_cast<std::int64_t>(value);
  }

  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    }
    bad();
  }

  std::string quoted() {
    skip_space();
    const char quote = peek();
    if (quote != '\'' && quote != '"') bad();
    const std::size_t begin = ++at_;
    for (; peek() != quote; ++at_) {
      const char c = peek();
      if (c == '\0' || c == '\\' || static_cast<unsigned char>(c) < 0x20) bad();
    }
    return std::string(text_.substr(begin, at_++ - begin));
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  char peek() { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool accept(char c) {
    skip_space();
    if (peek() != c) return false;
    ++at_;
    skip_space();
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad();
  }
  [[noreturn]] void bad() {
    fail(where_, fmt::format("the .npy header is malformed at byte {}", at_));
  }

  static constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max() / 16;

  std::string_view text_, where_;
  std::size_t at_ = 0;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_;
  std::optional<std::vector<std::int64_t>> shape_;
};

struct Preamble {
  std::size_t text_begin, text_bytes;
};

Preamble read_preamble(std::span<const std::byte> bytes, std::string_view where) {
  if (bytes.size() < kNpyPreambleBytes ||
      std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    fail(where, "is not a .npy array");
  }
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  const std::size_t major = byte(6), minor = byte(7);
  if (major < 1 || major > 3 || minor != 0) {
    fail(where, fmt::format("has .npy version {}.{}; 1.0, 2.0 and 3.0 are read", major, minor));
  }
  Preamble preamble{10, byte(8) | byte(9) << 8};
  if (major > 1) {
    preamble = {12, preamble.text_bytes | byte(10) << 16 | byte(11) << 24};
  }
  if (preamble.text_bytes > kMaxHeader || preamble.text_begin + preamble.text_bytes < 12) {
    fail(where, fmt::format("has a .npy header of {} bytes", preamble.text_bytes));
  }
  return preamble;
}

}  // namespace

std::size_t npy_prefix_bytes(std::span<const std::byte> preamble, std::string_view where) {
  const Preamble p = read_preamble(preamble, where);
  return p.text_begin + p.text_bytes;
}

NpyHeader parse_npy_prefix(std::span<const std::byte> prefix, std::string_view where) {
  const Preamble p = read_preamble(prefix, where);
  if (prefix.size() != p.text_begin + p.text_bytes) fail(where, "the .npy header is cut short");
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()) + p.text_begin,
                              p.text_bytes);
  return HeaderParser(text, where).parse();
}

}  // namespace tpudist
