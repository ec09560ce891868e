#include "models/plans/refined_graph.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "models/plans/colour_table.hpp"

namespace tpudist {

RefinedGraph::RefinedGraph(std::int64_t nodes, std::span<const std::int32_t> edges,
                           std::span<const std::int32_t> config_nodes,
                           std::vector<std::int32_t> node_class, const PlanShape& shape)
    : nodes_(nodes),
      config_nodes_(config_nodes.begin(), config_nodes.end()),
      node_class_(std::move(node_class)),
      shape_(shape),
      edges_(nodes, edges),
      reached_(reached_nodes(edges_, config_nodes, shape)),
      needed_nodes_(shape.layers.size() + 1) {
  if (static_cast<std::int64_t>(node_class_.size()) != nodes) {
    throw Error(ErrorKind::failed, "colour refinement needs one class for each node");
  }
  for (const std::int32_t c : node_class_) classes_ = std::max<std::int64_t>(classes_, c + 1);
  for (const std::int32_t level : needed_levels(edges_, reached_.back(), shape)) {
    for (std::int32_t layer = 0; layer <= level; ++layer) ++needed_nodes_[layer];
  }
  refine_static();
}

// Colours of what is not reached: own colour and the groups of the neighbours, none of which is
// reached either.
void RefinedGraph::refine_static() {
  std::vector<std::uint32_t> key;
  for (int layer = 0; layer <= static_cast<int>(shape_.layers.size()); ++layer) {
    if (layer > 0) {
      std::vector<StaticGroups>& groups = static_groups_.emplace_back();
      for (const EdgeDirection direction : shape_.layers[layer - 1].directions) {
        groups.push_back(group_static(layer - 1, direction));
      }
    }
    StaticLayer current;
    current.colour.assign(nodes_, 0);
    for (const std::int32_t node : reached_[layer]) current.colour[node] = -1;
    ColourTable table;
    for (std::int32_t node = 0; node < nodes_; ++node) {
      if (current.colour[node] < 0) continue;
      key.clear();
      if (layer == 0) {
        key.push_back(node_class_[node]);
      } else {
        key.push_back(static_.back().colour[node]);
        for (const StaticGroups& groups : static_groups_.back()) {
          key.push_back(groups.of_node[node]);
        }
      }
      bool fresh = false;
      current.colour[node] = table.colour(key, fresh);
      if (fresh) current.node.push_back(node);
    }
    static_.push_back(std::move(current));
  }
}

StaticGroups RefinedGraph::group_static(int layer, EdgeDirection direction) const {
  const std::vector<std::int32_t>& before = static_[layer].colour;
  StaticGroups groups;
  groups.of_node.assign(nodes_, -1);
  ColourTable table;
  std::vector<std::uint32_t> key;
  for (std::int32_t node = 0; node < nodes_; ++node) {
    const auto sources = adjacency(direction).of(node);
    key.clear();
    for (const std::int32_t source : sources) {
      if (before[source] >= 0) key.push_back(before[source]);
    }
    if (key.size() != sources.size()) continue;
    std::sort(key.begin(), key.end());
    bool fresh = false;
    groups.of_node[node] = table.colour(key, fresh);
    if (!fresh) continue;
    groups.source.insert(groups.source.end(), key.begin(), key.end());
    groups.begin.push_back(static_cast<std::int64_t>(groups.source.size()));
  }
  return groups;
}

}  // namespace tpudist
