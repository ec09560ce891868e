#include "data/hlo/layout_configs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_map>

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/random.hpp"
#include "core/text.hpp"

namespace tpudist {

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
        if (t >= node.tensors.size() && !tensors[t].empty())
          fail(at, fmt::format("{} has an output and {} operands, so {} layouts at most", name,
                               node.tensors.size() - 1, node.tensors.size()));
        const int rank = t < node.tensors.size() ? node.tensors[t].rank : 0;
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

}  // namespace tpudist
