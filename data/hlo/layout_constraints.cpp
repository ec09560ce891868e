#include "data/hlo/layout_constraints.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <vector>

namespace tpudist {
namespace {

// The characters of a file's names that a comment or a line may have.
std::string ascii(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  std::string plain(text.substr(0, kLongest));
  for (char& c : plain) {
    if (c < ' ' || c > '~') c = '?';
  }
  return plain;
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// An instruction's name as a new Python name. No keyword has a digit or "_".
std::string python_name(std::string_view name, std::set<std::string>& taken) {
  std::string plain = ascii(name);
  for (char& c : plain) {
    if (!is_letter(c) && !(c >= '0' && c <= '9')) c = '_';
  }
  if (plain.empty() || !is_letter(plain.front())) plain.insert(0, "op_");
  if (std::ranges::all_of(plain, is_letter)) plain += '_';
  std::string own = plain;
  for (int number = 2; !taken.insert(own).second; ++number)
    own = fmt::format("{}_{}", plain, number);
  return own;
}

// All dimensions of a tensor, major to minor: first those that the state does not order, ascending.
// Nothing if the state orders dimensions that the tensor does not have.
std::optional<std::vector<int>> major_to_minor(const std::vector<int>& minor, int rank) {
  std::vector<int> order;
  for (int d = 0; d < rank; ++d) {
    if (std::ranges::find(minor, d) == minor.end()) order.push_back(d);
  }
  order.insert(order.end(), minor.rbegin(), minor.rend());
  if (std::ssize(order) != rank) return std::nullopt;
  return order;
}

// The function of one operation.
class JaxFunction {
 public:
  // `named`: whether the module has JAX's names.
  JaxFunction(const ConfigurableNode& node, std::uint16_t state, bool named) : node_(node) {
    const LayoutState& layouts = node.states[state];
    text_ = fmt::format("# {}: {}{}{}, {}{}\n", ascii(node.name), node.opcode,
                        node.jax_name.empty() ? "" : " ", ascii(node.jax_name),
                        layout_text(node.opcode, layouts),
                        state == node.standard ? ", the default" : "");
    if (node.jax_name.find("transpose(") != std::string::npos) {
      note("an operation of a gradient: JAX has no name for it");
      return;
    }
    if (named && node.jax_name.empty()) {
      note("the compiler made the operation: JAX has no name for it");
      return;
    }
    for (int tensor = 0; tensor < kTensors && tensor < std::ssize(node.tensors); ++tensor)
      constrain(tensor, tensor_layout(layouts, tensor));
  }

  // Only comments if nothing is constrained.
  std::string text(std::set<std::string>& taken) const {
    if (std::ranges::all_of(lines_, &std::string::empty)) return text_ + '\n';
    const std::string_view operands = node_.tensors.size() > 2 ? "a, b" : "a";
    std::string text =
        text_ + fmt::format("def {}(operation, {}):\n", python_name(node_.name, taken), operands);
    for (const char* operand : {"a", "b"}) {
      const std::string& layout = lines_[operand[0] == 'a' ? 1 : 2];
      if (!layout.empty())
        text += fmt::format("    {0} = with_layout_constraint({0}, {1})\n", operand, layout);
    }
    return text + (lines_[0].empty()
                       ? fmt::format("    return operation({})\n\n", operands)
                       : fmt::format("    return with_layout_constraint(operation({}), {})\n\n",
                                     operands, lines_[0]));
  }

 private:
  void note(std::string_view what) { text_ += fmt::format("#   {}\n", what); }

  void constrain(int tensor, const std::vector<int>& minor) {
    const auto& [name, rank, by_compiler] = node_.tensors[static_cast<std::size_t>(tensor)];
    const std::string what =
        tensor == 0 ? "the result" : fmt::format("{} ({})", tensor == 1 ? "a" : "b", ascii(name));
    if (minor.empty()) {
      note(what + (rank == 0 ? " is a scalar: it has no layout"
                             : " is not constrained: the compiler chooses"));
      return;
    }
    if (by_compiler) {
      note(what + " is not constrained: the compiler made the tensor, JAX has no name for it");
      return;
    }
    const auto order = major_to_minor(minor, rank);
    if (!order) {
      note(fmt::format("{} is not constrained: it has {} dimensions, not {{{}}}", what, rank,
                       fmt::join(minor, ",")));
      return;
    }
    if (std::ssize(minor) < rank)
      note(fmt::format("{} has {} dimensions: only the {} minor ones are configured", what, rank,
                       minor.size()));
    lines_[static_cast<std::size_t>(tensor)] =
        fmt::format("Layout(({}{}))", fmt::join(*order, ", "), order->size() == 1 ? "," : "");
  }

  const ConfigurableNode& node_;
  std::string text_;
  std::array<std::string, kTensors> lines_;  // Layout(...) of each tensor, empty: none
};

}  // namespace

std::string jax_constraints(const LayoutSpace& space, const LayoutConfig& config,
                            std::string_view title) {
  std::string text = fmt::format(
      "# {}\n"
      "# For JAX, which counts dimensions major to minor. Each function calls an operation and\n"
      "# constrains its operands and its result:\n"
      "#   y = conv_1(lambda a, b: lax.conv_general_dilated(a, b, ...), x, kernel)\n"
      "from jax.experimental.layout import Layout, with_layout_constraint\n\n",
      ascii(title));
  const bool named = std::ranges::any_of(
      space.nodes, [](const ConfigurableNode& node) { return !node.jax_name.empty(); });
  std::set<std::string> taken{"Layout", "with_layout_constraint"};
  for (std::size_t i = 0; i < config.size(); ++i)
    text += "\n" + JaxFunction(space.nodes[i], config[i], named).text(taken);
  return text;
}

std::string layout_config_text(const LayoutSpace& space, const LayoutConfig& config,
                               std::string_view title) {
  std::string text = fmt::format(
      "# {}\n"
      "# LayoutConfig: dimensions minor to major, of output and operands. No tensors: the compiler "
      "chooses.\n",
      ascii(title));
  for (std::size_t i = 0; i < config.size(); ++i) {
    const ConfigurableNode& node = space.nodes[i];
    const LayoutState& state = node.states[config[i]];
    text += fmt::format("nodes {{  # {}: {}\n", ascii(node.name), node.opcode);
    int last = kTensors - 1;  // the last with dimensions
    while (last >= 0 && tensor_layout(state, last).empty()) --last;
    for (int tensor = 0; tensor <= last; ++tensor) {
      const std::vector<int> dimensions = tensor_layout(state, tensor);
      text += fmt::format("  tensors {{{}{} }}\n",
                          dimensions.empty() ? "" : " dims: ", fmt::join(dimensions, " dims: "));
    }
    text += "}\n";
  }
  return text;
}

}  // namespace tpudist
