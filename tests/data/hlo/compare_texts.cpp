// Compares our reader of HLO text with another parser: tests/golden/hlo_text_mutations.py starts it.
//
// Input: for each case the lengths of a text and of the HloModuleProto that the other parser made of it
// (8 bytes each, of this machine; -1: it refused the text), and both. Output: a line for each,
//   equal | both refuse | we refuse: WHY | we accept | differ: WHAT

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "data/hlo/hlo_features.hpp"
#include "data/hlo/proto_reader.hpp"
#include "data/hlo/text_reader.hpp"
#include "data/schema/feature_schema.hpp"

namespace tpudist {
namespace {

std::optional<std::string> read_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (std::fread(bytes.data(), 1, count, stdin) != count) return std::nullopt;
  return bytes;
}

std::optional<std::int64_t> read_length() {
  std::int64_t length = 0;
  if (std::fread(&length, sizeof length, 1, stdin) != 1) return std::nullopt;
  return length;
}

// What features, edges and configurations depend on.
struct Content {
  std::string text;
  std::vector<float> features;
  bool operator==(const Content&) const = default;
};

// By name, or without names by what is there.
std::map<std::string, Content> contents_of(const HloModule& module, bool without_names) {
  const HloGraph graph = featurise(module, "module");
  std::map<std::int64_t, std::string> names, computations;
  for (const HloComputation& computation : module.computations) {
    computations[computation.id] = without_names ? "" : computation.name;
    for (const HloInstruction& own : computation.instructions)
      names[own.id] = without_names ? own.opcode : computation.name + "/" + own.name;
  }
  const auto list = [](const std::vector<std::int64_t>& ids,
                       const std::map<std::int64_t, std::string>& of) {
    std::vector<std::string> found;
    for (const std::int64_t id : ids) found.push_back(of.at(id));
    return found;
  };
  std::map<std::string, Content> contents;
  const float* row = graph.node_features.data();
  for (const HloComputation& computation : module.computations) {
    for (const HloInstruction& own : computation.instructions) {
      // Edges to called computations have no order.
      std::vector<std::string> called = list(own.called_computations, computations);
      std::ranges::sort(called);
      Content content{
          fmt::format("{} dimensions {} layout {} of {} calls {}", own.opcode, own.shape.dimensions,
                      own.shape.minor_to_major, list(own.operands, names), called),
          {row, row + kNodeFeatures}};
      std::string key = names[own.id];
      if (without_names) key += fmt::format(" {} {}", content.text, content.features);
      while (!contents.emplace(key, content).second) key += '+';
      row += kNodeFeatures;
    }
  }
  return contents;
}

std::string difference(const Content& own, const Content& other) {
  if (own.text != other.text) return fmt::format("{} | theirs {}", own.text, other.text);
  std::string columns;
  for (std::size_t c = 0; c < own.features.size(); ++c) {
    if (own.features[c] != other.features[c])
      columns += fmt::format(" {}: {} | {}", c, own.features[c], other.features[c]);
  }
  return "features" + columns;
}

// "" where both have the same content.
std::string difference(const HloModule& own, const HloModule& other, bool without_names) {
  const auto contents = contents_of(own, without_names), others = contents_of(other, without_names);
  for (const auto& [name, content] : others) {
    const auto found = contents.find(name);
    if (found == contents.end()) return name + " is not there";
    if (found->second != content)
      return fmt::format("{}: {}", name, difference(found->second, content));
  }
  if (contents.size() == others.size()) return "";
  return fmt::format("{} instructions, theirs {}", contents.size(), others.size());
}

std::string verdict(const std::string& text, const std::optional<std::string>& proto) {
  std::optional<HloModule> own;
  std::string why;
  try {
    own = read_text_module(text, "text");
    featurise(*own, "text");
  } catch (const DataError& error) {
    own.reset();
    why = error.what();
  }
  if (!proto) return own ? "we accept" : "both refuse";
  if (!own) return "we refuse: " + why;
  const HloModule other = read_module(protozero::pbf_reader{*proto});
  const std::string by_name = difference(*own, other, false);
  // The other parser gives new names to equal ones of two computations, and to some with numbers.
  if (by_name.empty() || difference(*own, other, true).empty()) return "equal";
  return "differ: " + by_name;
}

}  // namespace
}  // namespace tpudist

int main() {
  while (const auto text_length = tpudist::read_length()) {
    const auto proto_length = tpudist::read_length();
    const auto text = tpudist::read_bytes(static_cast<std::size_t>(*text_length));
    std::optional<std::string> proto;
    if (proto_length && *proto_length >= 0)
      proto = tpudist::read_bytes(static_cast<std::size_t>(*proto_length));
    if (!proto_length || !text) return 1;
    std::string line;
    try {
      line = tpudist::verdict(*text, proto);
    } catch (const std::exception& error) {
      line = fmt::format("differ: {}", error.what());
    }
    for (char& c : line) {
      if (c == '\n') c = ' ';
    }
    std::puts(line.c_str());
  }
  return 0;
}
