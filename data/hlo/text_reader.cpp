#include "data/hlo/text_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "data/hlo/hlo_features.hpp"
#include "schema/tpugraphs.hpp"

namespace tpudist {
namespace {

using List = std::vector<std::int64_t>;

constexpr std::size_t kDeepest = 200;  // brackets within brackets

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
constexpr std::int64_t kTupleType = 13;
// A dimension without a bound, as XLA stores it.
constexpr std::int64_t kUnbounded = INT64_MIN;

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         c == '-';
}

// A place in a text. Nothing reads behind its end: there peek() is 0, as it is for a byte 0.
class Cursor {
 public:
  Cursor(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  [[noreturn]] void fail(std::string_view what) const {
    const auto line = 1 + std::ranges::count(text_.substr(0, at_), '\n');
    throw DataError(fmt::format("{}: line {}: {}", where_, line, what));
  }
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  std::size_t place() const { return at_; }
  void go_to(std::size_t place) { at_ = place; }

  // Skips space and comments.
  void skip_space() {
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
  // Skips space, then `word` where it comes next.
  bool accept(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view word) {
    if (!accept(word)) fail(fmt::format("expected \"{}\"", word));
  }
  // Letters, digits, "_", "." and "-"; a "%" before them is skipped. A "->" ends it.
  std::string_view name() {
    accept("%");
    const std::size_t begin = at_;
    while (is_name(peek()) && text_.substr(at_, 2) != "->") ++at_;
    if (at_ == begin) fail("expected a name");
    return text_.substr(begin, at_ - begin);
  }
  // What follows, without space before it; nothing else may be between it and the number.
  std::int64_t integer() {
    std::int64_t value = 0;
    const char* end = text_.data() + text_.size();
    const auto [behind, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc()) fail("expected an integer of 64 bits");
    at_ = static_cast<std::size_t>(behind - text_.data());
    return value;
  }
  // Integers with `between` between them, up to `end`, which is skipped.
  List integers(std::string_view between, std::string_view end) {
    List list;
    if (accept(end)) return list;
    do {
      skip_space();
      list.push_back(integer());
    } while (accept(between));
    expect(end);
    return list;
  }
  // "..." with escapes.
  void skip_string() {
    for (++at_; peek() != '"'; ++at_) {
      if (at_end()) fail("a string has no end");
      if (peek() == '\\') ++at_;
    }
    ++at_;
  }
  // Brackets and all in them.
  void skip_group() {
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
  // The value of an attribute: up to a comma, a space or a closing bracket that is not in brackets.
  std::string_view value() {
    skip_space();
    const std::size_t begin = at_;
    for (char c = peek(); !at_end() && !is_space(c) && c != ',' && c != ')' && c != '}';
         c = peek()) {
      if (c == '"') {
        skip_string();
      } else if (c == '(' || c == '[' || c == '{') {
        skip_group();
      } else {
        ++at_;
      }
    }
    return text_.substr(begin, at_ - begin);
  }

 private:
  std::string_view text_, where_;
  std::size_t at_ = 0;
};

void skip_attribute(Cursor& from) {
  from.name();
  from.expect("=");
  from.value();
}

// The minor-to-major list of a layout; tiles and memory spaces behind a ":" are skipped.
List read_layout(Cursor& from, std::size_t rank) {
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

HloShape read_shape(Cursor& from, std::size_t depth = 0) {
  HloShape shape;
  if (depth > kDeepest) from.fail(fmt::format("more than {} tuples within tuples", kDeepest));
  if (from.accept("(")) {
    shape.element_type = kTupleType;
    if (from.accept(")")) return shape;
    do {
      read_shape(from, depth + 1);
      ++shape.tuple_shapes;
    } while (from.accept(","));
    from.expect(")");
    return shape;
  }
  const std::string_view type = from.name();
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

// 3x1x2
List read_sizes(Cursor& from) {
  List sizes;
  do {
    sizes.push_back(from.integer());
  } while (from.accept("x"));
  return sizes;
}

// 0_1x2_3: low and high, and with a third number what is between elements.
void read_padding(Cursor& from, List& low, List& high) {
  do {
    low.push_back(from.integer());
    from.expect("_");
    high.push_back(from.integer());
    if (from.accept("_")) from.integer();
  } while (from.accept("x"));
}

HloWindow read_window(Cursor& from) {
  HloWindow window;
  from.expect("{");
  while (!from.accept("}")) {
    const std::string_view field = from.name();
    from.expect("=");
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

// The places of two letters and of the digits in a label such as b01f.
void read_label(Cursor& from, std::string_view label, std::string_view letters, std::int64_t& first,
                std::int64_t& second, List* spatial) {
  List digits(label.size(), -1);
  std::array<std::int64_t, 2> places{-1, -1};
  std::size_t count = 0;
  for (std::size_t d = 0; d < label.size(); ++d) {
    const std::size_t letter = letters.find(label[d]);
    if (letter != std::string_view::npos) {
      places[letter] = static_cast<std::int64_t>(d);
    } else if (is_digit(label[d]) && static_cast<std::size_t>(label[d] - '0') < label.size()) {
      digits[static_cast<std::size_t>(label[d] - '0')] = static_cast<std::int64_t>(d);
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
  if (spatial) *spatial = std::move(digits);
}

HloConvolution read_convolution(Cursor& from) {
  HloConvolution of;
  const std::string_view labels = from.value();
  const std::size_t kernel = labels.find('_'), output = labels.find("->");
  if (kernel == std::string_view::npos || output == std::string_view::npos || output < kernel)
    from.fail("dim_labels are not of the form b01f_01io->b01f");
  read_label(from, labels.substr(0, kernel), "bf", of.input_batch, of.input_feature,
             &of.input_spatial);
  read_label(from, labels.substr(kernel + 1, output - kernel - 1), "io", of.kernel_input_feature,
             of.kernel_output_feature, &of.kernel_spatial);
  read_label(from, labels.substr(output + 2), "bf", of.output_batch, of.output_feature, nullptr);
  return of;
}

// {[0:3], [1:9:2]}
void read_slice(Cursor& from, HloInstruction& to) {
  from.expect("{");
  if (from.accept("}")) return;
  do {
    from.expect("[");
    const List bounds = from.integers(":", "]");
    if (bounds.size() != 2 && bounds.size() != 3) from.fail("a slice is [start:limit:stride]");
    to.slice_start.push_back(bounds[0]);
    to.slice_limit.push_back(bounds[1]);
    to.slice_stride.push_back(bounds.size() == 3 ? bounds[2] : 1);
  } while (from.accept(","));
  from.expect("}");
}

// The attributes on which features and edges depend: what XLA's parser takes them for, and where it
// needs them. Names between spaces.
struct Attribute {
  std::string_view key, taken_by, needed_by;
};
constexpr Attribute kAttributes[] = {
    {"dimensions",
     " all-to-all broadcast concatenate get-dimension-size set-dimension-size map reduce reverse "
     "sort transpose all-gather reduce-scatter all-gather-start ",
     " broadcast concatenate reduce reverse sort transpose all-gather reduce-scatter "
     "get-dimension-size set-dimension-size "},
    {"iota_dimension", " iota ", " iota "},
    {"window", " convolution custom-call reduce-window select-and-scatter ", ""},
    {"dim_labels", " convolution custom-call ", " convolution "},
    {"feature_group_count", " convolution custom-call ", ""},
    {"batch_group_count", " convolution custom-call ", ""},
    {"slice", " slice ", " slice "},
    {"dynamic_slice_sizes", " dynamic-slice ", " dynamic-slice "},
    {"padding", " pad ", " pad "},
    {"is_stable", " sort ", ""},
    {"to_apply",
     " all-reduce call custom-call map reduce reduce-window scatter sort all-reduce-start "
     "reduce-scatter ",
     " all-reduce call map reduce reduce-window scatter reduce-scatter "},
    {"calls", " fusion async-start async-update async-done ", " fusion "},
    {"condition", " while ", " while "},
    {"body", " while ", " while "},
    {"select", " select-and-scatter ", " select-and-scatter "},
    {"scatter", " select-and-scatter ", " select-and-scatter "}};

bool lists(std::string_view names, std::string_view name) {
  const std::size_t at = names.find(name);
  if (at == std::string_view::npos) return false;
  if (names[at - 1] == ' ' && names[at + name.size()] == ' ') return true;
  return lists(names.substr(at + name.size() - 1), name);
}

class TextReader {
 public:
  TextReader(std::string_view text, std::string_view where) : from_(text, where) {}

  HloModule read() {
    from_.expect("HloModule");
    module_.name = from_.name();
    while (from_.accept(",")) skip_attribute(from_);
    skip_tables();
    for (from_.skip_space(); !from_.at_end(); from_.skip_space()) read_computation();
    for (const Call& call : calls_) {
      const auto found = computations_.find(call.name);
      if (found == computations_.end()) {
        from_.go_to(call.place);
        from_.fail(fmt::format("the computation {} does not exist", call.name));
      }
      module_.computations[call.computation]
          .instructions[call.instruction]
          .called_computations.push_back(found->second);
    }
    if (module_.computations.empty()) from_.fail("the module has no computation");
    return std::move(module_);
  }

 private:
  // A call of a computation that may stand further below.
  struct Call {
    std::string_view name;
    std::size_t computation = 0, instruction = 0;
    std::size_t place = 0;
  };

  // Numbered lines on the sources, which newer dumps have.
  void skip_tables() {
    for (const auto* table : {"FileNames", "FunctionNames", "FileLocations", "StackFrames"}) {
      if (!from_.accept(table)) continue;
      for (from_.skip_space(); is_digit(from_.peek()); from_.skip_space()) {
        from_.integer();
        from_.value();
      }
    }
  }

  void read_computation() {
    const std::size_t begin = from_.place();
    std::string_view name = from_.name();
    if (name == "ENTRY") name = from_.name();
    HloComputation& own = module_.computations.emplace_back();
    own.name = name;
    own.id = std::ssize(module_.computations);
    from_.skip_space();
    if (from_.peek() == '(') {
      from_.skip_group();
      from_.expect("->");
      read_shape(from_);
    }
    from_.expect("{");
    instructions_.clear();
    operands_.clear();
    while (!from_.accept("}")) read_instruction(own);
    while (from_.accept(",")) skip_attribute(from_);
    if (own.instructions.empty()) from_.fail(fmt::format("computation {} is empty", name));
    if (own.root == 0) own.root = own.instructions.back().id;
    for (const auto& [operand, instruction, place] : operands_) {
      const auto found = instructions_.find(operand);
      if (found == instructions_.end()) {
        from_.go_to(place);
        from_.fail(fmt::format("operand {} does not exist in {}", operand, name));
      }
      own.instructions[instruction].operands.push_back(found->second);
    }
    if (!computations_.emplace(name, own.id).second) {
      from_.go_to(begin);
      from_.fail(fmt::format("two computations are called {}", name));
    }
  }

  void read_instruction(HloComputation& computation) {
    std::string_view name = from_.name();
    from_.skip_space();
    const bool is_root = name == "ROOT" && from_.peek() != '=';
    if (is_root) name = from_.name();
    HloInstruction own;
    own.name = name;
    own.id = ++nodes_;
    if (nodes_ > kMaxNodes)
      from_.fail(fmt::format("a module has more than {} instructions", kMaxNodes));
    if (!instructions_.emplace(name, own.id).second)
      from_.fail(fmt::format("two instructions are called {}", name));
    if (is_root && computation.root != 0) from_.fail("a computation has two roots");
    if (is_root) computation.root = own.id;
    from_.expect("=");
    own.shape = read_shape(from_);
    own.opcode = from_.name();
    refuse_short_async(own.opcode);
    if (own.opcode == "convolution" || own.opcode == "custom-call")
      own.feature_group_count = own.batch_group_count = 1;
    computation.instructions.push_back(std::move(own));
    read_operands(computation.instructions);
    keys_.clear();
    while (from_.accept(",")) read_attribute(computation.instructions.back());
    require_attributes(computation.instructions.back().opcode);
  }

  // Opcodes that the features do not know may have any attributes.
  void require_attributes(std::string_view opcode) {
    if (opcode_number(opcode) == 0) return;
    for (const Attribute& own : kAttributes) {
      const bool is_there = std::ranges::find(keys_, own.key) != keys_.end();
      if (is_there && !lists(own.taken_by, opcode))
        from_.fail(fmt::format("{} takes no attribute {}", opcode, own.key));
      if (!is_there && lists(own.needed_by, opcode))
        from_.fail(fmt::format("{} lacks its attribute {}", opcode, own.key));
    }
  }

  void refuse_short_async(std::string_view opcode) {
    for (const std::string_view end : {"-start", "-update", "-done"}) {
      if (opcode.ends_with(end) && opcode_number(opcode) == 0)
        from_.fail(fmt::format("{} hides a computation; dump the module as a proto", opcode));
    }
  }

  void read_operands(std::vector<HloInstruction>& instructions) {
    HloInstruction& own = instructions.back();
    from_.skip_space();
    if (from_.peek() != '(') from_.fail(fmt::format("expected \"(\" behind {}", own.opcode));
    if (own.opcode == "constant") return from_.skip_group();
    from_.expect("(");
    if (own.opcode == "parameter") {
      from_.skip_space();
      own.parameter_number = from_.integer();
      return from_.expect(")");
    }
    if (from_.accept(")")) return;
    do {
      from_.skip_space();
      const std::size_t begin = from_.place();
      const bool tuple = from_.peek() == '(';
      std::string_view name = tuple ? std::string_view() : from_.name();
      if (tuple || from_.peek() == '[') {  // a shape before the name
        from_.go_to(begin);
        read_shape(from_);
        name = from_.name();
      }
      operands_.push_back({name, instructions.size() - 1, begin});
    } while (from_.accept(","));
    from_.expect(")");
  }

  void read_attribute(HloInstruction& to) {
    const std::string_view key = from_.name();
    if (std::ranges::find(keys_, key) != keys_.end())
      from_.fail(fmt::format("the attribute {} stands twice", key));
    keys_.push_back(key);
    from_.expect("=");
    from_.skip_space();
    const auto list = [&] {
      from_.expect("{");
      return from_.integers(",", "}");
    };
    if (key == "dimensions") {
      to.dimensions = list();
    } else if (key == "iota_dimension") {
      to.dimensions = {from_.integer()};
    } else if (key == "window") {
      to.window = read_window(from_);
    } else if (key == "dim_labels") {
      to.convolution = read_convolution(from_);
    } else if (key == "feature_group_count") {
      to.feature_group_count = from_.integer();
    } else if (key == "batch_group_count") {
      to.batch_group_count = from_.integer();
    } else if (key == "slice") {
      read_slice(from_, to);
    } else if (key == "dynamic_slice_sizes") {
      to.dynamic_slice_sizes = list();
    } else if (key == "padding" && to.opcode == "pad") {
      const char c = from_.peek();
      if (is_digit(c) || c == '-') read_padding(from_, to.edge_padding_low, to.edge_padding_high);
    } else if (key == "is_stable") {
      to.is_stable = from_.value() == "true";
    } else if (calls_computations(key)) {
      read_calls();
    } else if (key == "metadata") {
      to.op_name = op_name(from_.value());
    } else {
      from_.value();
    }
  }

  // Of {op_type="..." op_name="..." ...}: as it is written.
  static std::string_view op_name(std::string_view metadata) {
    constexpr std::string_view kKey = "op_name=\"";
    const std::size_t at = metadata.find(kKey);
    if (at == std::string_view::npos) return {};
    const std::size_t begin = at + kKey.size();
    std::size_t end = begin;
    while (end < metadata.size() && metadata[end] != '"') end += metadata[end] == '\\' ? 2 : 1;
    return metadata.substr(begin, end - begin);
  }

  static bool calls_computations(std::string_view key) {
    constexpr std::array<std::string_view, 10> kKeys = {"to_apply",
                                                        "calls",
                                                        "condition",
                                                        "body",
                                                        "select",
                                                        "scatter",
                                                        "true_computation",
                                                        "false_computation",
                                                        "branch_computations",
                                                        "called_computations"};
    return std::ranges::find(kKeys, key) != kKeys.end();
  }

  void read_calls() {
    const std::size_t computation = module_.computations.size() - 1;
    const std::size_t instruction = module_.computations.back().instructions.size() - 1;
    const auto call = [&] {
      from_.skip_space();
      const std::size_t place = from_.place();
      calls_.push_back({from_.name(), computation, instruction, place});
    };
    if (!from_.accept("{")) return call();
    if (from_.accept("}")) return;
    do {
      call();
    } while (from_.accept(","));
    from_.expect("}");
  }

  struct Operand {
    std::string_view name;
    std::size_t instruction = 0, place = 0;
  };

  Cursor from_;
  HloModule module_;
  std::int64_t nodes_ = 0;
  std::unordered_map<std::string_view, std::int64_t> computations_, instructions_;  // ids
  std::vector<Operand> operands_;       // of one computation
  std::vector<std::string_view> keys_;  // attributes of one instruction
  std::vector<Call> calls_;
};

}  // namespace

bool is_hlo_text(std::string_view text) {
  try {
    return Cursor(text.substr(0, 4096), "").accept("HloModule");
  } catch (const DataError&) {  // a comment without an end
    return false;
  }
}

HloModule read_text_module(std::string_view text, std::string_view where) {
  return TextReader(text, where).read();
}

}  // namespace tpudist
