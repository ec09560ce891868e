#include "train/units/graph_draw.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/hash.hpp"
#include "core/random.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {
namespace {

// Distinguish draws of edges and nodes from other draws with the same seed and step.
constexpr std::uint64_t kEdgesKey = 0x65646765735f3031, kNodesKey = 0x6e6f6465735f3031,
                        kSegmentsKey = 0x7365676d5f303031;

std::uint64_t key_of(const Graph& graph, const GraphDraw& draw, std::size_t slate) {
  const std::uint64_t own = draw.slates.empty() ? slate : draw.slates.at(slate);
  return mix_key({draw.key, hash64(graph_of_id(graph.name)), own});
}

using Segments = std::vector<std::vector<std::int32_t>>;  // configurable_segments

// Segments, the largest first.
std::vector<int> by_size(const Segments& segments) {
  std::vector<int> order(segments.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](int i) { return segments[i].size(); });
  return order;
}

SegmentDraw draw_of(const Segments& segments, const Graph& graph, const GraphDraw& draw,
                    std::size_t slate) {
  const std::size_t count = segments.size();
  CounterRng random(mix_key({kSegmentsKey, key_of(graph, draw, slate)}));
  SegmentDraw drawn;
  drawn.own = static_cast<int>(random.below(count));
  if (draw.segment >= 0)
    drawn.own = by_size(segments)[static_cast<std::size_t>(draw.segment) % count];
  for (std::size_t i = 0; i < count; ++i)
    drawn.taken.push_back(random.uniform() < draw.stale_keep && static_cast<int>(i) != drawn.own);
  drawn.scale = draw.stale_keep + (1 - draw.stale_keep) * static_cast<double>(count);
  return drawn;
}

// Whether nodes of the graph are drawn.
bool draws_nodes(const Graph& graph, const GraphReduction& reduction, const GraphDraw& draw) {
  return reduction.draws(graph.nodes) && (draw.trains || !reduction.gradient_only);
}

}  // namespace

GraphDraw graph_draw(const Experiment& experiment, std::int64_t step,
                     std::span<const SlateId> slates) {
  GraphDraw draw;
  draw.dropout = experiment.batch.edge_dropout;
  draw.key = mix_key({kEdgesKey, experiment.order_seed, static_cast<std::uint64_t>(step)});
  draw.one_segment = experiment.data.cuts_segments();
  draw.trains = experiment.data.reduction.gradient_only;
  draw.stale_keep = experiment.batch.stale_keep;
  for (const SlateId& slate : slates)
    draw.slates.push_back(mix_key(
        {static_cast<std::uint64_t>(slate.epoch), static_cast<std::uint64_t>(slate.number)}));
  return draw;
}

std::int64_t largest_segment(const Graph& graph) {
  const Segments segments = configurable_segments(graph);
  return std::ssize(*std::ranges::max_element(segments, {}, &std::vector<std::int32_t>::size));
}

bool keeps_whole(const Graph& graph, const GraphReduction& reduction, const GraphDraw& draw) {
  const bool segment =
      draw.one_segment &&
      std::ranges::adjacent_find(graph.segment, std::not_equal_to()) != graph.segment.end();
  return draw.dropout <= 0 && !draws_nodes(graph, reduction, draw) && !segment;
}

SegmentDraw segment_draw(const Graph& graph, const GraphDraw& draw, std::size_t slate) {
  return draw_of(configurable_segments(graph), graph, draw, slate);
}

std::vector<std::int32_t> kept_edges(const Graph& graph, const GraphDraw& draw, std::size_t slate) {
  if (draw.dropout <= 0) return {graph.edge_index.begin(), graph.edge_index.end()};
  CounterRng random(key_of(graph, draw, slate));
  std::vector<std::int32_t> kept;
  for (std::size_t e = 0; e < graph.edge_index.size(); e += 2) {
    if (random.uniform() < draw.dropout) continue;
    kept.push_back(graph.edge_index[e]);
    kept.push_back(graph.edge_index[e + 1]);
  }
  return kept;
}

namespace {

// All nodes of a graph, then copies of `nodes` with the edges between the copies.
GraphPart with_copies(const Graph& graph, std::vector<std::int32_t> nodes,
                      std::span<const std::int32_t> edges) {
  std::vector<std::int32_t> all(graph.nodes);
  std::iota(all.begin(), all.end(), 0);
  GraphPart part = part_of(graph, std::move(all), edges);
  const GraphPart copy = part_of(graph, std::move(nodes), edges);
  const auto first = static_cast<std::int32_t>(graph.nodes);
  part.nodes.insert(part.nodes.end(), copy.nodes.begin(), copy.nodes.end());
  for (const std::int32_t end : copy.edges) part.edges.push_back(first + end);
  for (const std::int32_t end : copy.config_edges) part.config_edges.push_back(first + end);
  for (const std::int32_t node : copy.config_nodes) part.config_nodes.push_back(first + node);
  part.config_places.insert(part.config_places.end(), copy.config_places.begin(),
                            copy.config_places.end());
  return part;
}

}  // namespace

GraphPart drawn_part(const Graph& graph, const GraphReduction& reduction, const GraphDraw& draw,
                     std::size_t slate) {
  std::vector<std::int32_t> nodes;
  if (draw.one_segment) {
    Segments segments = configurable_segments(graph);
    const int own = draw_of(segments, graph, draw, slate).own;
    nodes = std::move(segments[own]);
  } else if (draws_nodes(graph, reduction, draw)) {
    nodes = drawn_nodes(graph, reduction, mix_key({kNodesKey, key_of(graph, draw, slate)}));
    if (draw.trains) return with_copies(graph, std::move(nodes), kept_edges(graph, draw, slate));
  } else {
    nodes.resize(graph.nodes);
    std::iota(nodes.begin(), nodes.end(), 0);
  }
  return part_of(graph, std::move(nodes), kept_edges(graph, draw, slate));
}

}  // namespace tpudist
