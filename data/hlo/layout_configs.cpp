#include "data/hlo/layout_configs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/numbers.hpp"
#include "core/random.hpp"
#include "core/text.hpp"

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

// The function of one operation whose state is not the default.
class JaxFunction {
 public:
  // `named`: whether the module has JAX's names.
  JaxFunction(const ConfigurableNode& node, std::uint16_t state, bool named)
      : node_(node), layouts_(node.states[state]) {
    text_ = fmt::format("# {}: {}{}{}{}{}, {}\n", ascii(node.name), node.opcode,
                        node.jax_name.empty() ? "" : " ", ascii(node.jax_name),
                        node.source.empty() ? "" : " ", ascii(node.source),
                        layout_text(node.opcode, layouts_));
    const bool of_gradient = node.jax_name.find("transpose(") != std::string::npos;
    const bool unnamed = named && node.jax_name.empty();
    if (of_gradient || unnamed) {
      lost_.push_back(of_gradient ? "an operation of a gradient: JAX has no name for it"
                                  : "the compiler made the operation: JAX has no name for it");
      return;
    }
    for (int tensor = 0; tensor < kTensors && tensor < std::ssize(node.tensors); ++tensor)
      constrain(tensor);
  }

  // The layouts that differ from the default's, and those of them that the function constrains.
  int changes() const {
    int count = 0;
    for (int tensor = 0; tensor < kTensors; ++tensor) count += is_changed(tensor);
    return count;
  }
  int constrained_changes() const {
    int count = 0;
    for (int tensor = 0; tensor < kTensors; ++tensor)
      count += is_changed(tensor) && !lines_[tensor].empty();
    return count;
  }
  // Why the function does not constrain the others.
  const std::vector<std::string>& lost() const { return lost_; }

  // Empty if nothing is constrained.
  std::string text(std::set<std::string>& taken) const {
    if (std::ranges::all_of(lines_, &std::string::empty)) return "";
    const std::string_view operands = node_.tensors.size() > 2 ? "a, b" : "a";
    std::string text = '\n' + text_ +
                       fmt::format("def {}(operation, {}):\n", python_name(node_.name, taken),
                                   operands);
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
  bool is_changed(int tensor) const {
    return tensor_layout(layouts_, tensor) != tensor_layout(node_.states[node_.standard], tensor);
  }

  void note(int tensor, const std::string& what, bool is_lost) {
    text_ += fmt::format("#   {}\n", what);
    if (is_lost && is_changed(tensor)) lost_.push_back(what);
  }

  void constrain(int tensor) {
    const auto& [name, rank, by_compiler] = node_.tensors[tensor];
    const std::vector<int> minor = tensor_layout(layouts_, tensor);
    const std::string what =
        tensor == 0 ? "the result" : fmt::format("{} ({})", tensor == 1 ? "a" : "b", ascii(name));
    if (minor.empty()) {
      note(tensor,
           what + (rank == 0 ? " is a scalar: it has no layout"
                             : " is not constrained: the compiler chooses"),
           true);
      return;
    }
    if (by_compiler) {
      note(tensor,
           what + " is not constrained: the compiler made the tensor, JAX has no name for it", true);
      return;
    }
    const auto order = major_to_minor(minor, rank);
    if (!order) {
      note(tensor,
           fmt::format("{} is not constrained: it has {} dimensions, not {{{}}}", what, rank,
                       fmt::join(minor, ",")),
           true);
      return;
    }
    if (std::ssize(minor) < rank)
      note(tensor,
           fmt::format("{} has {} dimensions: only the {} minor ones are configured", what, rank,
                       minor.size()),
           false);
    lines_[tensor] =
        fmt::format("Layout(({}{}))", fmt::join(*order, ", "), order->size() == 1 ? "," : "");
  }

  const ConfigurableNode& node_;
  const LayoutState& layouts_;
  std::string text_;
  std::array<std::string, kTensors> lines_;  // Layout(...) of each tensor, empty: none
  std::vector<std::string> lost_;
};

}  // namespace

std::vector<LayoutConfig> random_configs(const LayoutSpace& space, std::int64_t count,
                                         std::uint64_t seed) {
  std::vector<LayoutConfig> configs{space.standard()};
  std::set<LayoutConfig> seen(configs.begin(), configs.end());
  const auto set_group = [&](LayoutConfig& config, std::size_t group, std::size_t state) {
    for (const std::size_t node : space.groups[group])
      config[node] = static_cast<std::uint16_t>(state);
  };
  const auto add = [&](const LayoutConfig& config) {
    if (seen.insert(config).second) configs.push_back(config);
  };
  if (space.size() <= static_cast<double>(count)) {  // all, like an odometer
    std::vector<std::size_t> state(space.groups.size());
    for (std::size_t group = 0; group < state.size();) {
      LayoutConfig config = configs.front();
      for (std::size_t g = 0; g < state.size(); ++g) set_group(config, g, state[g]);
      add(config);
      for (group = 0; group < state.size(); ++group) {
        if (++state[group] < space.nodes[space.groups[group].front()].states.size()) break;
        state[group] = 0;
      }
    }
    return configs;
  }
  CounterRng draw(seed);
  // If few are left, most draws repeat a known configuration.
  for (std::int64_t tries = 0; std::ssize(configs) < count && tries < 100 * count; ++tries) {
    LayoutConfig config = configs.front();
    for (std::size_t g = 0; g < space.groups.size(); ++g)
      set_group(config, g, draw.below(space.nodes[space.groups[g].front()].states.size()));
    add(config);
  }
  return configs;
}

std::vector<LayoutConfig> neighbour_configs(const LayoutSpace& space) {
  std::vector<LayoutConfig> configs{space.standard()};
  for (const auto& group : space.groups) {
    const ConfigurableNode& first = space.nodes[group.front()];
    for (std::size_t state = 0; state < first.states.size(); ++state) {
      if (state == first.standard) continue;
      configs.push_back(configs.front());
      for (const std::size_t node : group) configs.back()[node] = static_cast<std::uint16_t>(state);
    }
  }
  return configs;
}

std::vector<LayoutConfig> json_configs(LayoutSpace& space, std::string_view text,
                                       std::string_view where) {
  const auto fail = [&](std::size_t config, std::string_view what) {
    throw DataError(fmt::format("{}: configuration {}: {}", where, config, what));
  };
  std::set<std::string> names;  // of the object; the parser would keep the last of equal names
  using Event = nlohmann::json::parse_event_t;
  const auto refuse_twice = [&](int, Event event, const nlohmann::json& name) {
    if (event == Event::object_start) names.clear();
    if (event == Event::key && !names.insert(name.get<std::string>()).second)
      throw DataError(fmt::format("{}: {} stands twice in a configuration", where, name.dump()));
    return true;
  };
  nlohmann::json json;
  try {
    if (json_depth(text) <= kDeepestJson) json = nlohmann::json::parse(text, refuse_twice);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: is no JSON: {}", where, json_fault(error.what())));
  }
  if (json.is_object() && json.contains("ranking")) {  // the output of `tpudist rank --json`
    auto list = nlohmann::json::array();
    for (const auto& entry : json["ranking"])
      if (entry.is_object() && entry.contains("layouts")) list.push_back(entry["layouts"]);
    json = std::move(list);
  }
  if (!json.is_array() || json.empty())
    throw DataError(fmt::format("{}: is no JSON list of configurations{}", where,
                                json.is_array() ? ": it is empty" : ""));
  std::unordered_map<std::string_view, std::size_t> number;
  for (std::size_t i = 0; i < space.nodes.size(); ++i) number.emplace(space.nodes[i].name, i);
  std::vector<LayoutConfig> configs;
  for (const auto& entry : json) {
    const std::size_t at = configs.size();
    if (!entry.is_object()) fail(at, "is no object of instructions");
    configs.push_back(space.standard());
    for (const auto& [name, tensors] : entry.items()) {
      const auto found = number.find(name);
      if (found == number.end()) {
        std::vector<std::string> known;
        for (const ConfigurableNode& node : space.nodes) known.push_back(node.name);
        fail(at,
             fmt::format("{} is no configurable instruction{}", name, did_you_mean(name, known)));
      }
      ConfigurableNode& node = space.nodes[found->second];
      if (!tensors.is_array() || tensors.size() > kTensors)
        fail(at, fmt::format("{} needs a list of at most {} layouts", name, kTensors));
      LayoutState state = kFreeState;
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        const bool known = !node.tensors.empty();  // of arrays alone, ranks are not known
        if (known && t >= node.tensors.size() && !tensors[t].empty())
          fail(at, fmt::format("{} has an output and {} operands, so {} layouts at most", name,
                               node.tensors.size() - 1, node.tensors.size()));
        const int rank = !known ? kDimensions : t < node.tensors.size() ? node.tensors[t].rank : 0;
        if (!tensors[t].is_array() || tensors[t].size() > kDimensions)
          fail(at, fmt::format("{} needs layouts of at most {} dimensions", name, kDimensions));
        for (std::size_t d = 0; d < tensors[t].size(); ++d) {
          const auto& value = tensors[t][d];
          if (!value.is_number_unsigned() ||
              value.get<std::uint64_t>() >= static_cast<std::uint64_t>(rank))
            fail(at,
                 fmt::format("{}: {} is no dimension of its {}, which has {}", name, value.dump(),
                             t == 0 ? "output" : fmt::format("operand {}", t - 1), rank));
          if (std::ranges::count(tensors[t], value) != 1)
            fail(at, fmt::format("{}: dimension {} stands twice", name, value.dump()));
          state[t * kDimensions + d] = value.get<std::int8_t>();
        }
      }
      configs.back()[found->second] = static_cast<std::uint16_t>(state_index(node, state));
    }
  }
  return configs;
}

std::string jax_constraints(const LayoutSpace& space, const LayoutConfig& config,
                            std::string_view title) {
  const bool named = std::ranges::any_of(
      space.nodes, [](const ConfigurableNode& node) { return !node.jax_name.empty(); });
  std::set<std::string> taken{"Layout", "with_layout_constraint"};
  std::string functions, lost;
  int changes = 0, constrained = 0;
  for (std::size_t i = 0; i < config.size(); ++i) {
    const ConfigurableNode& node = space.nodes[i];
    if (config[i] == node.standard) continue;
    const JaxFunction function(node, config[i], named);
    changes += function.changes();
    constrained += function.constrained_changes();
    functions += function.text(taken);
    for (const std::string& why : function.lost())
      lost += fmt::format("#   {}{}{}: {}\n", ascii(node.name), node.source.empty() ? "" : " ",
                          ascii(node.source), why);
  }
  std::string text = fmt::format("# {}\n", ascii(title));
  if (changes == 0) return text + "# no layout differs from the default: nothing to apply\n";
  text += fmt::format("# {} of {} can be said in JAX{}\n", constrained, counted(changes, "change"),
                      lost.empty() ? "" : "; not these:");
  return text + lost +
         "# For JAX, which counts dimensions major to minor. Each function calls an operation and\n"
         "# constrains its operands and its result:\n"
         "#   y = conv_1(lambda a, b: lax.conv_general_dilated(a, b, ...), x, kernel)\n"
         "from jax.experimental.layout import Layout, with_layout_constraint\n\n" +
         functions;
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
    text += fmt::format("nodes {{  # {}: {}{}{}{}\n", ascii(node.name), node.opcode,
                        node.source.empty() ? "" : " ", ascii(node.source),
                        config[i] == node.standard ? "" : ", not the default");
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
