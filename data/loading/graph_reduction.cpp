#include "data/loading/graph_reduction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "core/text.hpp"
#include "data/loading/metis_segments.hpp"

namespace tpudist {
namespace {

using Flags = std::vector<char>;  // [nodes]

Flags configurable_nodes(const Graph& graph) {
  Flags flags(static_cast<std::size_t>(graph.nodes), 0);
  for (const std::int32_t node : graph.config_nodes) flags[node] = 1;
  return flags;
}

// The configurable nodes and the nodes they reach. Each hop passes over all edges.
Flags kept_nodes(const Graph& graph, const Flags& configurable, const GraphReduction& reduction) {
  Flags kept = configurable;
  for (int hop = 0; hop < reduction.hops; ++hop) {
    const Flags before = kept;
    for (std::size_t e = 0; e < graph.edge_index.size(); e += 2) {
      const auto consumer = static_cast<std::size_t>(graph.edge_index[e]);
      const auto producer = static_cast<std::size_t>(graph.edge_index[e + 1]);
      if (before[consumer] && reduction.direction != GraphReduction::Direction::to_consumer)
        kept[producer] = 1;
      if (before[producer] && reduction.direction != GraphReduction::Direction::to_producer)
        kept[consumer] = 1;
    }
    if (kept == before) break;
  }
  return kept;
}

}  // namespace

GraphReduction GraphReduction::scored() const {
  GraphReduction scored = *this;
  if (!gradient_only) return scored;
  const GraphReduction none;
  scored.max_nodes = none.max_nodes;
  scored.sample = none.sample;
  scored.config_weight = none.config_weight;
  scored.gradient_only = none.gradient_only;
  return scored;
}

std::string to_text(const GraphReduction& reduction) {
  std::vector<std::string> parts;
  if (reduction.wanted) {
    const char* direction = reduction.direction == GraphReduction::Direction::both ? "both ways"
                            : reduction.direction == GraphReduction::Direction::to_producer
                                ? "to_producer"
                                : "to_consumer";
    parts.push_back(fmt::format(
        "config_neighbours, {} hop{} {}, edges {}", reduction.hops, reduction.hops == 1 ? "" : "s",
        direction, reduction.edges == GraphReduction::Edges::all ? "all" : "touching_config"));
  }
  if (reduction.segments == SegmentCut::consecutive)
    parts.push_back(fmt::format("segments of at most {} nodes", reduction.segment_nodes));
  if (reduction.segments == SegmentCut::metis)
    parts.push_back(fmt::format("segments by METIS of at most {} nodes", reduction.segment_nodes));
  if (reduction.config_edges) parts.push_back("with config edges");
  if (reduction.max_nodes > 0) {
    std::string how = "a window";
    if (reduction.sample == GraphReduction::Sample::random)
      how = fmt::format("random with weight {} of configurable ones", reduction.config_weight);
    parts.push_back(fmt::format("{} {} nodes, {}",
                                reduction.gradient_only ? "gradients of" : "at most",
                                reduction.max_nodes, how));
  }
  return parts.empty() ? "none" : join(parts, ", ");
}

GraphPart part_of(const Graph& graph, std::vector<std::int32_t> nodes,
                  std::span<const std::int32_t> edges) {
  GraphPart part;
  std::vector<std::int32_t> number(static_cast<std::size_t>(graph.nodes), -1);  // in the part
  for (std::size_t i = 0; i < nodes.size(); ++i) number[nodes[i]] = static_cast<std::int32_t>(i);
  const auto keep = [&](std::span<const std::int32_t> from, std::vector<std::int32_t>& to) {
    for (std::size_t e = 0; e < from.size(); e += 2) {
      const std::int32_t consumer = number[from[e]], producer = number[from[e + 1]];
      if (consumer < 0 || producer < 0) continue;
      to.push_back(consumer);
      to.push_back(producer);
    }
  };
  keep(edges, part.edges);
  keep(graph.config_edges, part.config_edges);
  for (std::size_t place = 0; place < graph.config_nodes.size(); ++place) {
    const std::int32_t node = number[graph.config_nodes[place]];
    if (node < 0) continue;
    part.config_nodes.push_back(node);
    part.config_places.push_back(static_cast<std::int32_t>(place));
  }
  part.nodes = std::move(nodes);
  return part;
}

namespace {

std::vector<std::int32_t> segments_of(const Graph& graph, const GraphReduction& reduction) {
  if (reduction.segments == SegmentCut::metis)
    return metis_segments(graph, reduction.segment_nodes);
  const std::int64_t count = (graph.nodes + reduction.segment_nodes - 1) / reduction.segment_nodes;
  std::vector<std::int32_t> segment;
  for (std::int64_t i = 1; i <= count; ++i)
    segment.resize(static_cast<std::size_t>(graph.nodes * i / count),
                   static_cast<std::int32_t>(i - 1));
  return segment;
}

void cut_segments(Graph& graph, const GraphReduction& reduction) {
  if (reduction.segments == SegmentCut::none) return;
  std::vector<std::int32_t> segment = segments_of(graph, reduction);
  const auto within = [&](std::span<const std::int32_t> all) {
    std::vector<std::int32_t> edges;
    for (std::size_t e = 0; e < all.size(); e += 2) {
      if (segment[all[e]] == segment[all[e + 1]]) edges.insert(edges.end(), {all[e], all[e + 1]});
    }
    return edges;
  };
  graph.edge_index = within(graph.edge_index);
  graph.edges = std::ssize(graph.edge_index) / 2;
  graph.config_edges = within(graph.config_edges);
  graph.segment = std::move(segment);
}

}  // namespace

std::vector<std::int32_t> config_edges_of(const Graph& graph) {
  const auto nodes = static_cast<std::size_t>(graph.nodes);
  std::vector<std::size_t> begin(nodes + 1, 0);  // [n + 1] of a consumer's producers
  for (std::size_t e = 0; e < graph.edge_index.size(); e += 2)
    ++begin[static_cast<std::size_t>(graph.edge_index[e]) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::int32_t> producers(graph.edge_index.size() / 2);
  std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
  for (std::size_t e = 0; e < graph.edge_index.size(); e += 2)
    producers[next[graph.edge_index[e]]++] = graph.edge_index[e + 1];

  const auto require_at_most = [&](std::int64_t most, std::size_t count, const char* what) {
    if (static_cast<std::int64_t>(count) <= most) return;
    throw DataError(fmt::format(
        "{}: {} more than {} edges between configurable nodes (config_consumer_to_producer or "
        "config_producer_to_consumer of a layer): leave the graph out by data.exclude, or these "
        "directions",
        graph.name, what, most));
  };
  const Flags configurable = configurable_nodes(graph);
  std::vector<std::int32_t> found, open, seen_from(nodes, -1);
  std::size_t followed = 0;
  for (const std::int32_t start : graph.config_nodes) {
    open.assign(1, start);
    while (!open.empty()) {
      const auto node = static_cast<std::size_t>(open.back());
      open.pop_back();
      followed += begin[node + 1] - begin[node];
      for (std::size_t e = begin[node]; e < begin[node + 1]; ++e) {
        const auto producer = static_cast<std::size_t>(producers[e]);
        if (producers[e] == start || std::exchange(seen_from[producer], start) == start) continue;
        if (!configurable[producer]) {
          open.push_back(producers[e]);
          continue;
        }
        found.push_back(start);
        found.push_back(producers[e]);
      }
    }
    require_at_most(kMostConfigEdges, found.size() / 2, "has");
    require_at_most(kMostFollowedEdges, followed, "would follow");
  }
  return found;
}

Graph reduced_graph(Graph graph, const GraphReduction& reduction) {
  if (reduction.config_edges) graph.config_edges = config_edges_of(graph);
  GraphReduction cuts = reduction;
  cuts.config_edges = false;
  if (cuts == GraphReduction()) return graph;
  if (graph.config_nodes.empty()) {
    throw DataError(fmt::format(
        "{}: has no configurable node, around which data.reduce keeps or draws nodes and by which "
        "data.segments chooses segments: exclude the graph (data.exclude), or leave these out",
        graph.name));
  }
  if (!reduction.wanted) {
    cut_segments(graph, reduction);
    return graph;
  }
  const Flags configurable = configurable_nodes(graph);
  const Flags kept = kept_nodes(graph, configurable, reduction);

  std::vector<std::int32_t> nodes, edges;
  for (std::size_t node = 0; node < kept.size(); ++node) {
    if (kept[node]) nodes.push_back(static_cast<std::int32_t>(node));
  }
  for (std::size_t e = 0; e < graph.edge_index.size(); e += 2) {
    const std::int32_t consumer = graph.edge_index[e], producer = graph.edge_index[e + 1];
    if (reduction.edges == GraphReduction::Edges::touching_config && !configurable[consumer] &&
        !configurable[producer])
      continue;
    edges.push_back(consumer);
    edges.push_back(producer);
  }
  GraphPart part = part_of(graph, std::move(nodes), edges);

  const std::size_t width = graph.feature_count();
  Graph reduced;
  reduced.name = graph.name;
  std::vector<float> features;
  std::vector<std::uint8_t> opcodes;
  for (const std::int32_t node : part.nodes) {
    const auto row = graph.node_features.begin() + static_cast<std::size_t>(node) * width;
    features.insert(features.end(), row, row + width);
    opcodes.push_back(graph.opcodes[node]);
  }
  reduced.nodes = std::ssize(part.nodes);
  reduced.edges = std::ssize(part.edges) / 2;
  reduced.node_features = std::move(features);
  reduced.opcodes = std::move(opcodes);
  reduced.edge_index = std::move(part.edges);
  reduced.config_nodes = std::move(part.config_nodes);
  reduced.config_edges = std::move(part.config_edges);
  cut_segments(reduced, reduction);
  return reduced;
}

std::vector<std::vector<std::int32_t>> configurable_segments(const Graph& graph) {
  std::vector<std::vector<std::int32_t>> segments;
  for (std::size_t node = 0; node < graph.segment.size(); ++node) {
    const auto own = static_cast<std::size_t>(graph.segment[node]);
    if (own >= segments.size()) segments.resize(own + 1);
    segments[own].push_back(static_cast<std::int32_t>(node));
  }
  const Flags configurable = configurable_nodes(graph);
  std::erase_if(segments, [&](const std::vector<std::int32_t>& nodes) {
    return std::ranges::none_of(nodes, [&](std::int32_t node) { return configurable[node]; });
  });
  return segments;
}

namespace {

std::vector<std::int32_t> drawn_window(const Graph& graph, std::size_t count, CounterRng& random) {
  const Flags configurable = configurable_nodes(graph);
  std::vector<std::int32_t> starts;
  std::ptrdiff_t inside = std::count(configurable.begin(), configurable.begin() + count, 1);
  for (std::size_t start = 0;; ++start) {
    if (inside > 0) starts.push_back(static_cast<std::int32_t>(start));
    if (start + count == configurable.size()) break;
    inside += configurable[start + count] - configurable[start];
  }
  std::vector<std::int32_t> nodes(count);
  std::iota(nodes.begin(), nodes.end(), starts[random.below(starts.size())]);
  return nodes;
}

std::vector<std::int32_t> drawn_by_weight(const Graph& graph, const GraphReduction& reduction,
                                          CounterRng& random) {
  const auto count = static_cast<std::size_t>(reduction.max_nodes);
  const Flags configurable = configurable_nodes(graph);
  std::vector<double> rank;  // [nodes] the smallest are drawn
  for (std::size_t node = 0; node < configurable.size(); ++node) {
    const double weight = configurable[node] ? reduction.config_weight : 1;
    rank.push_back(-std::log(1 - random.uniform()) / weight);
  }
  const auto before = [&](std::int32_t a, std::int32_t b) {
    return std::pair(rank[a], a) < std::pair(rank[b], b);
  };
  std::vector<std::int32_t> nodes(configurable.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(nodes.begin(), end - 1, nodes.end(), before);
  nodes.erase(end, nodes.end());
  if (std::ranges::none_of(nodes, [&](std::int32_t node) { return configurable[node]; }))
    *std::ranges::max_element(nodes, before) =
        *std::ranges::min_element(graph.config_nodes, before);
  std::ranges::sort(nodes);
  return nodes;
}

}  // namespace

std::vector<std::int32_t> drawn_nodes(const Graph& graph, const GraphReduction& reduction,
                                      std::uint64_t key) {
  const auto count = static_cast<std::size_t>(reduction.max_nodes);
  CounterRng random(key);
  return reduction.sample == GraphReduction::Sample::window
             ? drawn_window(graph, count, random)
             : drawn_by_weight(graph, reduction, random);
}

}  // namespace tpudist
