#pragma once

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/text.hpp"
#include "data/hlo/hlo_module.hpp"

namespace tpudist::test {

// The module m of one computation, with a line such as "d = f32[4,6] dot(p, p)" for each
// instruction. Layouts descend. Of the attributes takes dim_labels, and op_name, source_file and
// source_line of the metadata.
inline HloModule sketched_module(const std::string& lines) {
  const std::regex instruction(R"(\s*(\S+) = f32\[([\d,]*)\] ([\w-]+)\(([^)]*)\)(.*))");
  const std::regex labels(R"(dim_labels=(\w+)_(\w+)->(\w+))");
  const std::regex op_name(R"re(op_name="((?:\\.|[^"\\])*)")re");
  const std::regex source(R"re(source_file="([^"]*)")re"), line_number(R"(source_line=(\d+))");
  HloComputation only;
  only.name = "main";
  only.id = 1;
  std::map<std::string, std::int64_t> ids;
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    std::smatch found, part;
    if (!std::regex_match(line, found, instruction))
      throw std::logic_error("no instruction: " + line);
    HloInstruction own;
    own.name = found[1];
    own.opcode = found[3];
    own.id = std::ssize(ids) + 1;
    own.shape.element_type = 11;
    for (const std::string& size : split(found[2].str(), ','))
      if (!size.empty()) own.shape.dimensions.push_back(std::stoll(size));
    for (std::int64_t d = std::ssize(own.shape.dimensions); d-- > 0;)
      own.shape.minor_to_major.push_back(d);
    if (own.opcode == "parameter") own.parameter_number = std::stoll(found[4]);
    for (const std::string& operand : split(found[4].str(), ','))
      if (own.opcode != "parameter" && !operand.empty())
        own.operands.push_back(ids.at(std::string(trim(operand))));
    const std::string attributes = found[5];
    if (std::regex_search(attributes, part, labels)) {
      const std::string input = part[1], kernel = part[2], output = part[3];
      const auto place = [](const std::string& all, char label) {
        return static_cast<std::int64_t>(all.find(label));
      };
      own.convolution.input_batch = place(input, 'b');
      own.convolution.input_feature = place(input, 'f');
      own.convolution.kernel_input_feature = place(kernel, 'i');
      own.convolution.kernel_output_feature = place(kernel, 'o');
      own.convolution.output_batch = place(output, 'b');
      own.convolution.output_feature = place(output, 'f');
      for (char digit = '0'; input.find(digit) != std::string::npos; ++digit) {
        own.convolution.input_spatial.push_back(place(input, digit));
        own.convolution.kernel_spatial.push_back(place(kernel, digit));
      }
    }
    if (std::regex_search(attributes, part, op_name)) own.op_name = part[1];
    if (std::regex_search(attributes, part, source)) {
      const std::string file = part[1];
      std::regex_search(attributes, part, line_number);
      own.source = source_text(file, part.empty() ? 0 : std::stoll(part[1]));
    }
    ids[own.name] = only.root = own.id;
    only.instructions.push_back(std::move(own));
  }
  HloModule module;
  module.name = "m";
  module.computations.push_back(std::move(only));
  return module;
}

}  // namespace tpudist::test
