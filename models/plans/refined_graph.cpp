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
  refine_unreached();
}

// Colours the unreached nodes by their own colour and their neighbourhoods before the layer. None
// of their neighbours is reached either.
void RefinedGraph::refine_unreached() {
  std::vector<std::uint32_t> key;
  for (int layer = 0; layer <= static_cast<int>(shape_.layers.size()); ++layer) {
    if (layer > 0) {
      std::vector<UnreachedNeighbourhoods>& sets = unreached_neighbourhoods_.emplace_back();
      for (const EdgeKind kind : shape_.layers[layer - 1].edge_kinds) {
        sets.push_back(kind == EdgeKind::nodes     ? collect_unreached_graph(layer - 1)
                       : kind == EdgeKind::configs ? collect_unreached_configs(layer - 1)
                                                   : collect_unreached(layer - 1, kind));
      }
    }
    UnreachedLayer current;
    current.colour.assign(nodes_, 0);
    for (const std::int32_t node : reached_[layer]) current.colour[node] = -1;
    ColourTable table;
    for (std::int32_t node = 0; node < nodes_; ++node) {
      if (current.colour[node] < 0) continue;
      key.clear();
      if (layer == 0) {
        key.push_back(node_class_[node]);
      } else {
        key.push_back(unreached_.back().colour[node]);
        for (const UnreachedNeighbourhoods& neighbourhoods : unreached_neighbourhoods_.back()) {
          key.push_back(neighbourhoods.of_node[node]);
        }
      }
      bool fresh = false;
      current.colour[node] = table.colour(key, fresh);
      if (fresh) current.node.push_back(node);
    }
    unreached_.push_back(std::move(current));
  }
}

// All nodes see the whole graph, which is unreached where all nodes are.
UnreachedNeighbourhoods RefinedGraph::collect_unreached_graph(int layer) const {
  UnreachedNeighbourhoods neighbourhoods;
  const bool unreached = reached_[layer].empty();
  neighbourhoods.of_node.assign(nodes_, unreached ? 0 : -1);
  if (!unreached) return neighbourhoods;
  neighbourhoods.source = unreached_[layer].colour;
  std::ranges::sort(neighbourhoods.source);
  neighbourhoods.begin.push_back(nodes_);
  return neighbourhoods;
}

// A node that no configuration reaches sees its own colour in every configuration.
UnreachedNeighbourhoods RefinedGraph::collect_unreached_configs(int layer) const {
  UnreachedNeighbourhoods neighbourhoods;
  neighbourhoods.of_node = unreached_[layer].colour;
  for (std::size_t colour = 0; colour < unreached_[layer].node.size(); ++colour) {
    neighbourhoods.source.push_back(static_cast<std::int32_t>(colour));
    neighbourhoods.begin.push_back(static_cast<std::int64_t>(colour) + 1);
  }
  return neighbourhoods;
}

UnreachedNeighbourhoods RefinedGraph::collect_unreached(int layer, EdgeKind kind) const {
  const std::vector<std::int32_t>& before = unreached_[layer].colour;
  UnreachedNeighbourhoods neighbourhoods;
  neighbourhoods.of_node.assign(nodes_, -1);
  ColourTable table;
  std::vector<std::uint32_t> key;
  for (std::int32_t node = 0; node < nodes_; ++node) {
    const auto sources = adjacency(kind).of(node);
    key.clear();
    for (const std::int32_t source : sources) {
      if (before[source] >= 0) key.push_back(before[source]);
    }
    if (key.size() != sources.size()) continue;
    std::sort(key.begin(), key.end());
    bool fresh = false;
    neighbourhoods.of_node[node] = table.colour(key, fresh);
    if (!fresh) continue;
    neighbourhoods.source.insert(neighbourhoods.source.end(), key.begin(), key.end());
    neighbourhoods.begin.push_back(static_cast<std::int64_t>(neighbourhoods.source.size()));
  }
  return neighbourhoods;
}

}  // namespace tpudist
