#include "data/loading/config_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <ranges>
#include <utility>

#include "core/error.hpp"
#include "data/hlo/hlo_features.hpp"
#include "data/shards/config_codec.hpp"

namespace tpudist {
namespace {

// Parts the nodes of a graph by their codes in the configurations seen so far.
class NodeGroups {
 public:
  explicit NodeGroups(std::size_t nodes) : group_(nodes), first_{0} {}

  // `code` [nodes] of the next configuration. Nodes of a group with different codes part.
  template <typename Code>
  void part_by(const Code& code) {
    parted_.clear();
    for (std::size_t j = 0; j < group_.size(); ++j) {
      const std::size_t own = group_[j];
      if (code(j) == code(first_[own])) continue;
      const auto [at, fresh] = parted_.try_emplace({own, code(j)}, first_.size());
      if (fresh) first_.push_back(j);
      group_[j] = at->second;
    }
  }

  // [groups] their nodes, ascending; groups by their first node.
  std::vector<std::vector<std::size_t>> groups() const {
    std::vector<std::vector<std::size_t>> all(first_.size());
    for (std::size_t j = 0; j < group_.size(); ++j) all[group_[j]].push_back(j);
    std::ranges::sort(all, {}, [](const auto& nodes) { return nodes.front(); });
    return all;
  }

 private:
  std::vector<std::size_t> group_;  // of each node
  std::vector<std::size_t> first_;  // node of each group
  std::map<std::pair<std::size_t, std::uint16_t>, std::size_t> parted_;
};

// A row of node_config_feat as layouts.
LayoutState layout_state(std::span<const float> features, const std::string& name) {
  LayoutState state;
  for (std::size_t i = 0; i < state.size(); ++i) {
    state[i] = static_cast<std::int8_t>(features[i]);
    if (features[i] < -1 || features[i] >= kDimensions || features[i] != std::floor(features[i]))
      throw DataError(fmt::format("{}: node_config_feat has {}, which is no dimension of a layout",
                                  name, features[i]));
  }
  return state;
}

}  // namespace

double ConfigSpace::size() const {
  double size = 1;
  for (const Group& group : groups) size *= static_cast<double>(group.choices.size());
  return size;
}

ConfigSpace::Point ConfigSpace::random_point(CounterRng& rng) const {
  Point point;
  for (const Group& group : groups)
    point.push_back(static_cast<std::uint16_t>(rng.below(group.choices.size())));
  return point;
}

std::vector<std::int32_t> ConfigSpace::rows(const Point& point) const {
  std::vector<std::int32_t> own = standard;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto& states = groups[g].choices[point[g]];
    for (std::size_t i = 0; i < states.size(); ++i) own[groups[g].nodes[i]] = states[i];
  }
  return own;
}

LayoutConfig ConfigSpace::config(const Point& point) const {
  const std::vector<std::int32_t> own = rows(point);
  LayoutConfig config;
  for (std::size_t j = 0; j < own.size(); ++j)
    config.push_back(static_cast<std::uint16_t>(own[j] - offsets[j]));
  return config;
}

Slate ConfigSpace::slate(std::span<const Point> points) const {
  Slate slate;
  slate.configs.resize(points.size());
  std::iota(slate.configs.begin(), slate.configs.end(), 0);
  slate.targets.resize(points.size());
  for (const Point& point : points)
    std::ranges::copy(rows(point), std::back_inserter(slate.states));
  constexpr auto width = static_cast<std::size_t>(kLayoutConfigFeatures);
  std::vector<std::int32_t> place(states.size() / width, -1);
  std::int32_t used = 0;
  for (std::size_t j = 0; j < standard.size(); ++j) {
    for (std::size_t at = j; at < slate.states.size(); at += standard.size()) {
      const auto state = static_cast<std::size_t>(slate.states[at]);
      if (place[state] < 0) {
        place[state] = used++;
        const auto row = std::span(states).subspan(state * width, width);
        slate.local_states.insert(slate.local_states.end(), row.begin(), row.end());
      }
      slate.states[at] = place[state];
    }
  }
  return slate;
}

std::optional<ConfigSpace::Point> ConfigSpace::point_of(const LayoutConfig& own) const {
  Point point;
  for (const Group& group : groups) {
    point.push_back(own[group.nodes.front()]);
    if (point.back() >= group.choices.size()) return std::nullopt;
  }
  return config(point) == own ? std::optional(point) : std::nullopt;
}

std::optional<ConfigSpace::Point> ConfigSpace::point_of(const Dataset& data,
                                                        std::int64_t row) const {
  const Slate own = data.slate(0, std::span(&row, 1));
  const std::span<const float> table =
      own.local_states.empty() ? std::span<const float>(data.states(0).features) : own.local_states;
  constexpr auto width = static_cast<std::size_t>(kLayoutConfigFeatures);
  LayoutConfig config;
  for (std::size_t j = 0; j < standard.size(); ++j) {
    const auto features = table.subspan(static_cast<std::size_t>(own.states[j]) * width, width);
    std::int32_t at = offsets[j];
    while (at < offsets[j + 1] &&
           !std::ranges::equal(std::span(states).subspan(at * width, width), features))
      ++at;
    config.push_back(static_cast<std::uint16_t>(at - offsets[j]));
  }
  return point_of(config);
}

ConfigSpace ConfigSpace::without_groups() const {
  ConfigSpace free{states, offsets, standard, {}, {}};
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < groups[g].nodes.size(); ++i) {
      Group& own = free.groups.emplace_back();
      own.nodes = {groups[g].nodes[i]};
      for (const auto& states_of : groups[g].choices) own.choices.push_back({states_of[i]});
      free.standard_point.push_back(standard_point[g]);
    }
  }
  return free;
}

double ConfigSpace::broken_share(const Point& free) const {
  std::size_t at = 0, broken = 0;
  for (const Group& group : groups) {
    std::map<std::uint16_t, std::size_t> nodes;  // of each choice
    for (std::size_t i = 0; i < group.nodes.size(); ++i) ++nodes[free[at++]];
    broken += group.nodes.size() - std::ranges::max(nodes | std::views::values);
  }
  return static_cast<double>(broken) / static_cast<double>(standard.size());
}

int distance(const ConfigSpace::Point& a, const ConfigSpace::Point& b) {
  int differ = 0;
  for (std::size_t g = 0; g < a.size(); ++g) differ += a[g] != b[g];
  return differ;
}

ConfigSpace config_space(const LayoutSpace& layouts) {
  ConfigSpace space;
  space.offsets = {0};
  for (const ConfigurableNode& node : layouts.nodes) {
    for (const LayoutState& state : node.states)
      space.states.insert(space.states.end(), state.begin(), state.end());
    space.standard.push_back(space.offsets.back() + node.standard);
    space.offsets.push_back(space.offsets.back() + static_cast<std::int32_t>(node.states.size()));
  }
  for (const auto& nodes : layouts.groups) {
    const ConfigurableNode& first = layouts.nodes[nodes.front()];
    if (first.states.size() < 2) continue;
    ConfigSpace::Group& group = space.groups.emplace_back();
    group.nodes.assign(nodes.begin(), nodes.end());
    for (std::size_t choice = 0; choice < first.states.size(); ++choice) {
      auto& states = group.choices.emplace_back();
      for (const std::size_t node : nodes)
        states.push_back(space.offsets[node] + static_cast<std::int32_t>(choice));
    }
    space.standard_point.push_back(first.standard);
  }
  return space;
}

LayoutSpace listed_layouts(const Module& module) {
  const Dataset& data = module.dataset;
  const Graph& graph = data.graph(0);
  const std::size_t nodes = graph.config_nodes.size();
  const FeatureSchema& schema = data.options().collection.schema;
  if (schema.config_features != kLayoutConfigFeatures)
    throw DataError(fmt::format("{}: its configurations are no layouts", graph.name));
  ConfigEncoder encoder(static_cast<std::int64_t>(nodes), kLayoutConfigFeatures);
  NodeGroups groups(nodes);
  constexpr std::int64_t kRows = 256;  // read at a time
  std::vector<std::uint16_t> codes(kRows * nodes), standard;
  for (std::int64_t first = 0; first < data.rows(0); first += kRows) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(std::min(kRows, data.rows(0) - first)));
    std::iota(rows.begin(), rows.end(), first);
    const Slate slate = data.slate(0, rows);
    if (!data.coded(0) &&
        !encoder.encode(slate.local_states, std::span(codes).first(rows.size() * nodes)))
      throw DataError(fmt::format(
          "{}: the layouts of its nodes hardly repeat, so there are no choices to search among",
          graph.name));
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const auto own = std::span(codes).subspan(k * nodes, nodes);
      for (std::size_t j = 0; data.coded(0) && j < nodes; ++j)
        own[j] =
            static_cast<std::uint16_t>(slate.states[k * nodes + j] - data.states(0).offsets[j]);
      groups.part_by([&](std::size_t j) { return own[j]; });
      if (rows[k] == module.standard.value_or(0)) standard.assign(own.begin(), own.end());
    }
  }
  const ConfigStates states = data.coded(0) ? data.states(0) : encoder.states();
  LayoutSpace layouts;
  layouts.groups = groups.groups();
  for (std::size_t j = 0; j < nodes; ++j) {
    ConfigurableNode& own = layouts.nodes.emplace_back();
    own.node = graph.config_nodes[j];
    own.name = fmt::format("node_config_ids[{}]", j);
    own.opcode = opcode_name(graph.opcodes[own.node]);
    own.standard = standard[j];
    for (std::int32_t state = states.offsets[j]; state < states.offsets[j + 1]; ++state) {
      const auto row = std::span<const float>(states.features)
                           .subspan(static_cast<std::size_t>(state) * kLayoutConfigFeatures,
                                    kLayoutConfigFeatures);
      own.states.push_back(layout_state(row, graph.name));
    }
  }
  return layouts;
}

}  // namespace tpudist
