#include "data/hlo/text_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/numbers.hpp"
#include "data/hlo/hlo_features.hpp"
#include "data/hlo/text_attributes.hpp"
#include "data/hlo/text_cursor.hpp"
#include "data/schema/feature_schema.hpp"

namespace tpudist {
namespace {

// {(f32[2]{0}, s32[])->f32[2]{0}}
void read_entry_layout(TextCursor& from) {
  from.expect("{");
  from.parts([&] { read_shape(from); }, "(", ")");
  from.expect("->");
  read_shape(from);
  from.expect("}");
}

// The place of the quote that ends a string of which `at` is a character, or beyond the end.
std::size_t string_end(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at;
}

// The value of a field in {op_name="..." source_line=12}, as written, a string without its quotes;
// empty without the field.
std::string_view value_in(std::string_view fields, const std::string& name) {
  for (std::size_t at = 0; at < fields.size(); ++at) {
    if (fields[at] == '"') {
      at = string_end(fields, at + 1);
    } else if (std::string_view("{, \n").find(fields[at]) != std::string_view::npos &&
               fields.substr(at + 1).starts_with(name + "=")) {
      const std::string_view value = fields.substr(at + name.size() + 2);
      return value.starts_with('"') ? value.substr(1, string_end(value, 1) - 1)
                                    : value.substr(0, value.find_first_of(" ,}"));
    }
  }
  return {};
}

// 0 without the field.
std::int64_t number_in(std::string_view fields, const std::string& name) {
  return number_of<std::int64_t>(value_in(fields, name)).value_or(0);
}

class TextReader {
 public:
  TextReader(std::string_view text, std::string_view where) : from_(text, where) {}

  HloModule read() {
    from_.expect("HloModule");
    module_.name = from_.name();
    read_attributes("HloModule");
    read_sources();
    for (from_.skip_space(); !from_.at_end(); from_.skip_space()) read_computation();
    if (module_.computations.empty()) from_.fail("the module has no computation");
    return std::move(module_);
  }

 private:
  // Reads the numbered lines on sources of newer dumps: strings, or numbers by name.
  void read_sources() {
    for (const std::string_view table :
         {"FileNames", "FunctionNames", "FileLocations", "StackFrames"}) {
      if (!from_.accept(table)) continue;
      for (from_.skip_space(); is_digit(from_.peek()); from_.skip_space()) {
        const std::int64_t number = from_.integer();
        from_.skip_space();
        const std::size_t begin = from_.place();
        if (from_.peek() == '"') {
          from_.skip_string();
          const std::string_view name = from_.text_since(begin + 1);
          if (table == "FileNames") sources_.files[number] = name.substr(0, name.size() - 1);
          continue;
        }
        from_.expect("{");
        while (!from_.accept("}")) {
          from_.key();
          from_.value();
        }
        const std::string_view row = from_.text_since(begin);
        if (table == "FileLocations")
          sources_.locations[number] = {number_in(row, "file_name_id"), number_in(row, "line")};
        else if (table == "StackFrames")
          sources_.frames[number] = number_in(row, "file_location_id");
      }
    }
  }

  void read_computation() {
    const std::size_t begin = from_.place();
    std::string_view name = from_.name();
    if (name == "ENTRY") {
      if (has_entry_) from_.fail("a module has two ENTRY computations");
      has_entry_ = true;
      name = from_.name();
    }
    HloComputation& own = module_.computations.emplace_back();
    own.name = name;
    own.id = std::ssize(module_.computations);
    from_.skip_space();
    if (from_.peek() == '(') {
      const auto read = [this] {
        from_.name();
        from_.expect(":");
        read_shape(from_);
      };
      from_.parts(read, "(", ")");
      from_.expect("->");
      read_shape(from_);
    }
    from_.expect("{");
    instructions_.clear();
    while (!from_.accept("}")) read_instruction(own);
    read_attributes("computation");
    if (own.instructions.empty()) from_.fail(fmt::format("computation {} is empty", name));
    if (own.root == 0) own.root = own.instructions.back().id;
    // Known from here on, since no computation calls itself.
    if (!computations_.emplace(name, own.id).second) {
      from_.go_to(begin);
      from_.fail(fmt::format("two computations are called {}", name));
    }
  }

  void read_instruction(HloComputation& computation) {
    std::string_view name = from_.name();
    const bool is_root = name == "ROOT";
    if (is_root) name = from_.name();
    if (from_.peek() == '=') from_.fail(fmt::format("no space between {} and \"=\"", name));
    HloInstruction& own = computation.instructions.emplace_back();
    own.name = name;
    own.id = ++nodes_;
    if (nodes_ > kMaxNodes)
      from_.fail(fmt::format("a module has more than {} instructions", kMaxNodes));
    if (is_root && computation.root != 0) from_.fail("a computation has two roots");
    if (is_root) computation.root = own.id;
    from_.expect("=");
    own.shape = read_shape(from_);
    own.opcode = from_.word();
    refuse_short_async(own.opcode);
    if (own.opcode == "convolution" || own.opcode == "custom-call")
      own.feature_group_count = own.batch_group_count = 1;
    read_operands(own);
    read_attributes(own.opcode, &own);
    require_all(own, computation);
    if (!instructions_.emplace(name, own.id).second)
      from_.fail(fmt::format("two instructions are called {}", name));
  }

  void refuse_short_async(std::string_view opcode) {
    for (const std::string_view end : {"-start", "-update", "-done"}) {
      if (opcode.ends_with(end) && opcode_number(opcode) == 0)
        from_.fail(fmt::format("{} hides a computation; dump the module as a proto", opcode));
    }
  }

  // Opcodes unknown to the features may lack anything.
  void require_all(const HloInstruction& own, const HloComputation& computation) {
    const auto [found, is_new] = rules_.try_emplace(own.opcode);
    OpcodeRules& rules = found->second;
    if (is_new && opcode_number(own.opcode) != 0) rules = opcode_rules(own.opcode);
    const auto has = [&](std::string_view key) { return keys_.contains(key); };
    const auto require = [&](std::string_view key) {
      if (!has(key)) from_.fail(fmt::format("{} lacks its attribute {}", own.opcode, key));
    };
    std::ranges::for_each(rules.needed, require);
    if (own.opcode == "broadcast" && !own.operands.empty() &&
        !operand(computation, own).shape.dimensions.empty())
      require("dimensions");  // a scalar has one way
    if (own.opcode == "conditional" && !has("branch_computations"))
      std::ranges::for_each(std::array{"true_computation", "false_computation"}, require);
    if (own.opcode == "parameter" && own.parameter_number < 0)
      from_.fail(fmt::format("a parameter has the number {}", own.parameter_number));
  }

  // The first operand.
  static const HloInstruction& operand(const HloComputation& computation,
                                       const HloInstruction& of) {
    const auto first = computation.instructions.front().id;
    return computation.instructions[of.operands.front() - first];
  }

  void read_operands(HloInstruction& own) {
    from_.skip_space();
    if (from_.peek() != '(') from_.fail(fmt::format("expected \"(\" behind {}", own.opcode));
    const bool is_array = own.shape.element_type != kTupleType;
    if (own.opcode == "constant" && !is_array) return from_.skip_group();
    if (own.opcode == "constant") {
      from_.expect("(");
      from_.skip_literal(own.shape.dimensions);
      return from_.expect(")");
    }
    if (own.opcode == "parameter") {
      from_.expect("(");
      from_.skip_space();
      own.parameter_number = from_.integer();
      return from_.expect(")");
    }
    const auto read = [&] {
      from_.skip_space();
      const std::size_t begin = from_.place();
      const bool tuple = from_.peek() == '(';
      std::string_view name = tuple ? std::string_view() : from_.name();
      if (tuple || from_.peek() == '[' || from_.peek() == '(') {  // a shape before the name
        from_.go_to(begin);
        read_shape(from_);
        name = from_.name();
      }
      own.operands.push_back(id_of(instructions_, name, "operand", begin));
    };
    from_.parts(read, "(", ")");
  }

  // The id of a name, which must be defined before its use.
  std::int64_t id_of(const std::unordered_map<std::string_view, std::int64_t>& ids,
                     std::string_view name, std::string_view what, std::size_t place) {
    const auto found = ids.find(name);
    if (found != ids.end()) return found->second;
    from_.go_to(place);
    from_.fail(fmt::format("no {} {} stands above", what, name));
  }

  // Reads the attributes of an instruction, `to`, a module or a computation.
  void read_attributes(std::string_view of, HloInstruction* to = nullptr) {
    keys_.clear();
    const bool takes_any = to && opcode_number(of) == 0;
    while (from_.accept(",")) {
      const std::string_view key = from_.key();
      if (!keys_.insert(key).second) from_.fail(fmt::format("the attribute {} stands twice", key));
      from_.skip_space();
      const TextAttribute* known = text_attribute(key);
      if (known && !takes_any && !known->is_taken_by(of))
        from_.fail(fmt::format("{} takes no attribute {}", of, key));
      if (known && (!takes_any || known->form <= TextAttribute::Form::computations)) {
        read_attribute(*known, to);
      } else if (key == "metadata" && to) {
        const std::string_view metadata = from_.value();
        to->op_name = value_in(metadata, "op_name");
        to->source = source_text(std::string(value_in(metadata, "source_file")),
                                 number_in(metadata, "source_line"));
        if (to->source.empty()) to->source = sources_.text(number_in(metadata, "stack_frame_id"));
      } else {
        from_.value();
      }
    }
  }

  void read_attribute(const TextAttribute& attribute, HloInstruction* to) {
    switch (attribute.form) {
      case TextAttribute::Form::read:
        return to ? read_feature(attribute.key, *to) : read_entry_layout(from_);
      case TextAttribute::Form::computations:
        return read_calls(*to);
      case TextAttribute::Form::integer:
        from_.integer();
        return;
      case TextAttribute::Form::integers:
        read_list();
        return;
      case TextAttribute::Form::boolean:
        read_boolean();
        return;
      case TextAttribute::Form::string:
        return from_.skip_string();
      case TextAttribute::Form::word:
        if (const auto word = from_.word(); !attribute.has_word(word))
          from_.fail(fmt::format("{} is no {}", word, attribute.key));
        return;
      case TextAttribute::Form::booleans:
        return from_.parts([this] { read_boolean(); });
      case TextAttribute::Form::shapes:
        return from_.parts([this] { read_shape(from_); });
    }
  }

  std::vector<std::int64_t> read_list() {
    from_.expect("{");
    return from_.integers(",", "}");
  }

  bool read_boolean() {
    const std::string_view value = from_.word();
    if (value != "true" && value != "false") from_.fail("expected true or false");
    return value == "true";
  }

  void read_feature(std::string_view key, HloInstruction& to) {
    if (key == "dimensions") {
      to.dimensions = read_list();
    } else if (key == "iota_dimension" || key == "inferred_dimension") {
      to.dimensions = {from_.integer()};
    } else if (key.starts_with("lhs_") || key.starts_with("rhs_")) {  // of a dot
      for (const std::int64_t dimension : read_list())
        (key[0] == 'l' ? to.lhs_dimensions : to.rhs_dimensions).push_back(dimension);
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
      to.dynamic_slice_sizes = read_list();
    } else if (key == "padding" && to.opcode == "pad") {
      const char c = from_.peek();
      if (is_digit(c) || c == '-') read_padding(from_, to.edge_padding_low, to.edge_padding_high);
    } else if (key == "is_stable") {
      to.is_stable = read_boolean();
    } else if (key == "slice_sizes" && to.opcode == "gather") {
      read_list();  // collective-permute has a list of lists
    } else {
      from_.value();
    }
  }

  void read_calls(HloInstruction& to) {
    const auto call = [&] {
      from_.skip_space();
      const std::size_t place = from_.place();
      to.called_computations.push_back(id_of(computations_, from_.name(), "computation", place));
    };
    from_.skip_space();
    from_.peek() == '{' ? from_.parts(call) : call();
  }

  TextCursor from_;
  HloModule module_;
  HloSources sources_;
  std::int64_t nodes_ = 0;
  bool has_entry_ = false;
  std::unordered_map<std::string_view, std::int64_t> computations_, instructions_;  // ids
  std::unordered_map<std::string, OpcodeRules> rules_;
  std::unordered_set<std::string_view> keys_;  // attributes of one instruction
};

}  // namespace

bool is_hlo_text(std::string_view text) {
  try {
    return TextCursor(text.substr(0, 4096), "").accept("HloModule");
  } catch (const DataError&) {  // a comment without an end
    return false;
  }
}

HloModule read_text_module(std::string_view text, std::string_view where) {
  return TextReader(text, where).read();
}

}  // namespace tpudist
