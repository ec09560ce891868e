#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace tpudist {

// An attribute that XLA's parser takes (jaxlib 0.10.2). Lists have names between spaces. A module
// and a computation count as the opcodes "HloModule" and "computation".
struct TextAttribute {
  // The form of the value. Features or edges depend on the first two.
  enum class Form {
    read,          // in its own way
    computations,  // name, or {name, name}
    integer,       // 3
    integers,      // {0,1}
    boolean,       // true
    string,        // "text"
    word,          // one of `words`, or any name if there are none
    booleans,      // {true,false}
    shapes,        // {f32[2]{0}, s32[]}
  };

  std::string_view key;
  Form form;
  std::string_view taken_by, needed_by = {}, words = {};

  bool is_taken_by(std::string_view opcode) const;
  bool has_word(std::string_view word) const;
};

// Null for an attribute outside the table. Any opcode may have such an attribute.
const TextAttribute* text_attribute(std::string_view key);

// What XLA's parser requires of an opcode.
struct OpcodeRules {
  std::vector<std::string_view> needed;  // attributes
  std::optional<std::size_t> operands;   // if their number is fixed
};
OpcodeRules opcode_rules(std::string_view opcode);

}  // namespace tpudist
