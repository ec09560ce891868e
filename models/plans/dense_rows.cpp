#include "models/plans/dense_rows.hpp"

#include "models/plans/csr.hpp"

namespace tpudist {
namespace {

// Number of replicas that share one matrix: the configurations of a slate if all slates have
// equally many; otherwise 1.
std::int64_t common_replicas(std::span<const PlanSlate> slates) {
  for (const PlanSlate& slate : slates) {
    if (slate.configs != slates[0].configs) return 1;
  }
  return slates.empty() ? 1 : slates[0].configs;
}

bool same_graph(const PlanSlate& a, const PlanSlate& b) {
  return a.nodes == b.nodes && a.edges.data() == b.edges.data() &&
         a.edges.size() == b.edges.size() && a.config_nodes.data() == b.config_nodes.data() &&
         a.config_nodes.size() == b.config_nodes.size();
}

}  // namespace

// The edges of a graph, and up to which layer each node is needed.
struct DenseRows::GraphShape {
  GraphShape(const PlanSlate& slate, const PlanShape& shape)
      : edges(slate.nodes, slate.edges, slate.config_edges), level(levels_of(slate, shape)) {}

  std::vector<std::int32_t> levels_of(const PlanSlate& slate, const PlanShape& shape) const {
    if (shape.per_element) {
      // Configurations have separate rows even at nodes that none of them reaches.
      return std::vector<std::int32_t>(static_cast<std::size_t>(slate.nodes),
                                       static_cast<std::int32_t>(shape.layers.size()));
    }
    return needed_levels(edges, reached_nodes(edges, slate.config_nodes, shape).back(), shape);
  }

  GraphEdges edges;
  std::vector<std::int32_t> level;  // [nodes]
};

DenseRows::DenseRows(std::span<const PlanSlate> slates, const PlanShape& shape)
    : replicas_(common_replicas(slates)) {
  const auto depth = static_cast<std::int32_t>(shape.layers.size());
  std::int64_t nodes = 0;
  for (std::size_t s = 0; s < slates.size(); ++s) {
    std::size_t known = 0;
    while (known < s && !same_graph(slates[known], slates[s])) ++known;
    graph_.push_back(known < s ? graph_[known]
                               : std::make_shared<const GraphShape>(slates[s], shape));
    place_.emplace_back(slates[s].nodes);
    nodes += slates[s].nodes;
  }
  // Counting sort, the highest level first.
  needed_places_.assign(depth + 1, 0);
  for (const auto& graph : graph_) {
    for (const std::int32_t level : graph->level) {
      for (std::int32_t l = 0; l <= level; ++l) ++needed_places_[l];
    }
  }
  std::vector<std::int64_t> next = needed_places_;  // a level's places begin after the higher ones
  next.push_back(0);
  places_.resize(nodes);
  for (std::size_t s = 0; s < slates.size(); ++s) {
    for (std::int64_t node = 0; node < slates[s].nodes; ++node) {
      const std::int64_t place = next[graph_[s]->level[node] + 1]++;
      place_[s][node] = to_index32(place);
      places_[place] = {static_cast<std::int32_t>(s), static_cast<std::int32_t>(node)};
    }
  }
  begin_.push_back(0);
  for (const Place& place : places_) {
    begin_.push_back(begin_.back() + slates[place.slate].configs);
  }
}

const GraphEdges& DenseRows::edges(std::size_t slate) const {
  return graph_[slate]->edges;
}

}  // namespace tpudist
