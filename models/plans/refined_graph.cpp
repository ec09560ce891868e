#include "models/plans/refined_graph.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "models/plans/colour_table.hpp"

namespace tpudist {

RefinedArrays RefinedArrays::empty(const PlanShape& shape) {
  RefinedArrays arrays;
  arrays.reached.resize(shape.layers.size() + 1);
  arrays.unreached.resize(shape.layers.size() + 1);
  for (const LayerShape& layer : shape.layers)
    arrays.unreached_neighbourhoods.emplace_back(layer.edge_kinds.size());
  return arrays;
}

RefinedGraph::RefinedGraph(std::int64_t nodes, std::span<const std::int32_t> edges,
                           std::span<const std::int32_t> config_nodes,
                           Array<std::int32_t> node_class, const PlanShape& shape,
                           std::span<const std::int32_t> config_edges)
    : shape_(shape) {
  if (static_cast<std::int64_t>(node_class.size()) != nodes) {
    throw Error(ErrorKind::failed, "colour refinement needs one class for each node");
  }
  arrays_.config_nodes = std::vector(config_nodes.begin(), config_nodes.end());
  arrays_.node_class = std::move(node_class);
  count_classes();
  const GraphEdges lists(nodes, edges, config_edges);
  arrays_.edges = lists;
  arrays_.config_edges = lists.config;
  find_reached(lists);
  refine_unreached();
}

RefinedGraph::RefinedGraph(RefinedArrays arrays, const PlanShape& shape)
    : shape_(shape), arrays_(std::move(arrays)) {
  const auto sized = [&](const auto& values, std::size_t size) {
    if (values.size() != size)
      throw Error(ErrorKind::failed, "the arrays of a refined graph are of another graph or shape");
  };
  const std::size_t nodes = arrays_.node_class.size(), depth = shape.layers.size();
  for (const NeighbourLists* lists : {&arrays_.edges, &arrays_.config_edges}) {
    sized(lists->to_producer.begin, nodes + 1);
    sized(lists->to_consumer.begin, nodes + 1);
  }
  sized(arrays_.reached, depth + 1);
  sized(arrays_.needed_nodes, depth + 1);
  sized(arrays_.unreached, depth + 1);
  for (const UnreachedLayer& layer : arrays_.unreached) sized(layer.colour, nodes);
  sized(arrays_.unreached_neighbourhoods, depth);
  for (std::size_t layer = 0; layer < depth; ++layer) {
    sized(arrays_.unreached_neighbourhoods[layer], shape.layers[layer].edge_kinds.size());
    for (const auto& sets : arrays_.unreached_neighbourhoods[layer]) sized(sets.of_node, nodes);
  }
  count_classes();
}

void RefinedGraph::count_classes() {
  for (const std::int32_t c : node_class()) classes_ = std::max<std::int64_t>(classes_, c + 1);
}

void RefinedGraph::find_reached(const GraphEdges& edges) {
  for (auto& nodes : reached_nodes(edges, config_nodes(), shape_))
    arrays_.reached.emplace_back(std::move(nodes));
  std::vector<std::int64_t> needed(shape_.layers.size() + 1);
  for (const std::int32_t level : needed_levels(edges, arrays_.reached.back(), shape_)) {
    for (std::int32_t layer = 0; layer <= level; ++layer) ++needed[layer];
  }
  arrays_.needed_nodes = std::move(needed);
}

// Colours the unreached nodes by their own colour and their neighbourhoods before the layer. None
// of their neighbours is reached either.
void RefinedGraph::refine_unreached() {
  std::vector<std::uint32_t> key;
  for (int layer = 0; layer <= static_cast<int>(shape_.layers.size()); ++layer) {
    if (layer > 0) {
      std::vector<UnreachedNeighbourhoods>& sets = arrays_.unreached_neighbourhoods.emplace_back();
      for (const EdgeKind kind : shape_.layers[layer - 1].edge_kinds) {
        sets.push_back(kind == EdgeKind::nodes     ? collect_unreached_graph(layer - 1)
                       : kind == EdgeKind::configs ? collect_unreached_configs(layer - 1)
                                                   : collect_unreached(layer - 1, kind));
      }
    }
    std::vector<std::int32_t> colour(nodes(), 0), first;
    for (const std::int32_t node : reached(layer)) colour[node] = -1;
    ColourTable table;
    for (std::int32_t node = 0; node < nodes(); ++node) {
      if (colour[node] < 0) continue;
      key.clear();
      if (layer == 0) {
        key.push_back(node_class()[node]);
      } else {
        key.push_back(unreached(layer - 1).colour[node]);
        for (const auto& neighbourhoods : arrays_.unreached_neighbourhoods.back())
          key.push_back(neighbourhoods.of_node[node]);
      }
      bool fresh = false;
      colour[node] = table.colour(key, fresh);
      if (fresh) first.push_back(node);
    }
    arrays_.unreached.push_back({std::move(colour), std::move(first)});
  }
}

// All nodes see the whole graph. It is unreached if all nodes are.
UnreachedNeighbourhoods RefinedGraph::collect_unreached_graph(int layer) const {
  UnreachedNeighbourhoods neighbourhoods;
  const bool none_reached = reached(layer).empty();
  neighbourhoods.of_node = std::vector<std::int32_t>(nodes(), none_reached ? 0 : -1);
  if (!none_reached) return neighbourhoods;
  const Array<std::int32_t>& colour = unreached(layer).colour;
  std::vector<std::int32_t> source(colour.begin(), colour.end());
  std::ranges::sort(source);
  neighbourhoods.source = std::move(source);
  neighbourhoods.begin = {0, nodes()};
  return neighbourhoods;
}

// A node that no configuration reaches sees its own colour in every configuration.
UnreachedNeighbourhoods RefinedGraph::collect_unreached_configs(int layer) const {
  std::vector<std::int64_t> begin{0};
  std::vector<std::int32_t> source;
  for (std::size_t colour = 0; colour < unreached(layer).node.size(); ++colour) {
    source.push_back(static_cast<std::int32_t>(colour));
    begin.push_back(static_cast<std::int64_t>(colour) + 1);
  }
  return {unreached(layer).colour, std::move(begin), std::move(source)};
}

UnreachedNeighbourhoods RefinedGraph::collect_unreached(int layer, EdgeKind kind) const {
  const Array<std::int32_t>& before = unreached(layer).colour;
  std::vector<std::int32_t> of_node(nodes(), -1), source;
  std::vector<std::int64_t> begin{0};
  ColourTable table;
  std::vector<std::uint32_t> key;
  for (std::int32_t node = 0; node < nodes(); ++node) {
    const auto sources = adjacency(kind).of(node);
    key.clear();
    for (const std::int32_t other : sources) {
      if (before[other] >= 0) key.push_back(before[other]);
    }
    if (key.size() != sources.size()) continue;
    std::sort(key.begin(), key.end());
    bool fresh = false;
    of_node[node] = table.colour(key, fresh);
    if (!fresh) continue;
    source.insert(source.end(), key.begin(), key.end());
    begin.push_back(static_cast<std::int64_t>(source.size()));
  }
  return {std::move(of_node), std::move(begin), std::move(source)};
}

}  // namespace tpudist
