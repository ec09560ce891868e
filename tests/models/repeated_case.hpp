#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "core/random.hpp"
#include "data/schema/feature_schema.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/network/network.hpp"
#include "models/plans/build_plan.hpp"
#include "models/plans/row_keys.hpp"
#include "tests/support/contracted_edges.hpp"

namespace tpudist::test {

// A graph of repeated blocks, and the states that its configurable nodes can take.
struct RepeatedGraph {
  std::int64_t nodes = 0, state_rows = 0;
  std::vector<std::int32_t> edges, config_nodes;  // no configurable nodes: a tile graph
  std::vector<float> features;                    // [nodes, kNodeFeatures] raw
  std::vector<std::uint8_t> opcodes;              // [nodes]
  std::vector<float> states;                      // [state_rows, F]

  std::int64_t states_per_config() const {
    return std::max<std::int64_t>(static_cast<std::int64_t>(config_nodes.size()), 1);
  }
};

struct RepeatedSlate {
  int graph = 0;
  std::int64_t configs = 0;
  std::vector<std::int32_t> states;  // [K, nc], or [K] for tile
};

// Slates of some graphs in one unit.
struct RepeatedUnit {
  std::vector<RepeatedGraph> graphs;
  std::vector<RepeatedSlate> slates;
};

enum class Configurable { few, all, tile };

// Blocks with the same edges, one after another in a chain, with a few edges across; parallel
// edges; nodes without edges. Few classes of nodes, so that many nodes have equal features (zeros
// of either sign). Few different states, so that nodes share them.
inline RepeatedGraph random_graph(CounterRng& random, std::int64_t block, std::int64_t repeats,
                                  Configurable configurable, int config_features) {
  const auto below = [&](std::int64_t n) { return static_cast<std::int32_t>(random.below(n)); };
  RepeatedGraph graph;
  graph.nodes = block * repeats + below(3);
  const auto add_edge = [&](std::int64_t consumer, std::int64_t producer) {
    for (int copies = 1 + (below(5) == 0); copies > 0; --copies) {
      graph.edges.insert(graph.edges.end(), {static_cast<std::int32_t>(consumer),
                                             static_cast<std::int32_t>(producer)});
    }
  };
  std::vector<std::pair<std::int64_t, std::int64_t>> inner;
  for (std::int64_t u = 1; u < block; ++u) {
    for (int edges = below(3); edges > 0; --edges) inner.emplace_back(u, below(u));
  }
  for (std::int64_t r = 0; r < repeats; ++r) {
    for (const auto& [u, v] : inner) add_edge(r * block + u, r * block + v);
    if (r > 0) add_edge(r * block, r * block - 1);
    if (r > 0 && below(4) == 0) add_edge(r * block + below(block), below(r * block));
  }

  const int classes = 1 + below(4);
  std::vector<float> features;
  for (std::int64_t i = 0; i < classes * kNodeFeatures; ++i) {
    features.push_back(below(3) ? 0.0f : static_cast<float>(random.uniform(-100, 1000)));
  }
  for (std::int64_t v = 0; v < graph.nodes; ++v) {
    const std::int64_t kind = v % block % classes;
    for (std::int64_t i = 0; i < kNodeFeatures; ++i) {
      const float value = features[kind * kNodeFeatures + i];
      graph.features.push_back(value == 0 && below(9) == 0 ? -0.0f : value);
    }
    graph.opcodes.push_back(static_cast<std::uint8_t>(kind * 17 % kOpcodes));
    if (configurable == Configurable::all || (configurable == Configurable::few && below(4) == 0)) {
      graph.config_nodes.push_back(static_cast<std::int32_t>(v));
    }
  }
  if (configurable == Configurable::few && graph.config_nodes.empty()) {
    graph.config_nodes.push_back(below(graph.nodes));
  }

  constexpr std::int64_t kContents = 4, kKinds = 3;
  std::vector<float> contents;
  for (std::int64_t i = 0; i < kContents * config_features; ++i) {
    contents.push_back(static_cast<float>(below(7) - 1));
  }
  graph.state_rows = kKinds * graph.states_per_config();
  for (std::int64_t s = 0; s < graph.state_rows; ++s) {
    const auto content = std::span(contents).subspan(
        static_cast<std::size_t>(below(kContents) * config_features), config_features);
    for (const float value : content) {
      graph.states.push_back(value == 0 && below(5) == 0 ? -0.0f : value);
    }
  }
  return graph;
}

// K configurations: random, an earlier one with some nodes changed, or an earlier one again.
inline RepeatedSlate random_configs(CounterRng& random, std::span<const RepeatedGraph> graphs,
                                    int graph, std::int64_t configs) {
  const std::int64_t width = graphs[graph].states_per_config();
  const std::int64_t kinds = graphs[graph].state_rows / width;
  RepeatedSlate slate{graph, configs, {}};
  for (std::int64_t k = 0; k < configs; ++k) {
    const std::uint64_t how = k == 0 ? 0 : random.below(4);  // share of nodes that keep their state
    const std::int64_t before = k == 0 ? 0 : static_cast<std::int64_t>(random.below(k)) * width;
    for (std::int64_t j = 0; j < width; ++j) {
      const bool keep = how == 3 || (how == 2 && random.below(8) != 0);
      slate.states.push_back(keep ? slate.states[before + j]
                                  : static_cast<std::int32_t>(j * kinds + random.below(kinds)));
    }
  }
  return slate;
}

// The index of each graph's first input row; graph i has rows(i) input rows.
template <typename Rows>
std::vector<std::int64_t> input_begins(const RepeatedUnit& unit, const Rows& rows) {
  std::vector<std::int64_t> begins{0};
  for (std::size_t g = 0; g < unit.graphs.size(); ++g) begins.push_back(begins.back() + rows(g));
  return begins;
}

inline std::vector<float> states_of(const RepeatedUnit& unit) {
  std::vector<float> states;
  for (const RepeatedSlate& slate : unit.slates) {
    const std::vector<float>& own = unit.graphs[slate.graph].states;
    states.insert(states.end(), own.begin(), own.end());
  }
  return states;
}

// The inputs of a graph with a row for each class of nodes (`node_class`).
inline std::shared_ptr<const GraphInput> inputs_of_classes(
    const Network& network, const RepeatedGraph& graph, std::span<const std::int32_t> node_class) {
  std::vector<float> features;
  std::vector<std::uint8_t> opcodes;
  for (std::int64_t v = 0; v < graph.nodes; ++v) {
    if (node_class[v] < static_cast<std::int32_t>(opcodes.size())) continue;
    const auto row = std::span(graph.features).subspan(v * kNodeFeatures, kNodeFeatures);
    features.insert(features.end(), row.begin(), row.end());
    opcodes.push_back(graph.opcodes[v]);
  }
  return network.graph_of(network.graph_arrays(features, opcodes));
}

// [graphs]
inline std::vector<std::vector<std::int32_t>> config_edges_of(const RepeatedUnit& unit) {
  std::vector<std::vector<std::int32_t>> all;
  for (const RepeatedGraph& graph : unit.graphs)
    all.push_back(contracted_edges(graph.nodes, graph.edges, graph.config_nodes));
  return all;
}

// The reference: a dense plan with an input row for each node.
inline UnitInput dense_unit(const Network& network, const RepeatedUnit& unit) {
  UnitInput input;
  for (const RepeatedGraph& graph : unit.graphs) {
    input.graphs.push_back(network.graph_of(network.graph_arrays(graph.features, graph.opcodes)));
  }
  const auto begins = input_begins(unit, [&](std::size_t g) { return unit.graphs[g].nodes; });
  std::vector<PlanSlate> views;
  const auto config_edges = config_edges_of(unit);
  for (const RepeatedSlate& slate : unit.slates) {
    const RepeatedGraph& graph = unit.graphs[slate.graph];
    PlanSlate view{graph.nodes,   graph.edges,  graph.config_nodes,
                   slate.configs, slate.states, graph.state_rows};
    view.input_begin = begins[slate.graph];
    view.config_edges = config_edges[slate.graph];
    views.push_back(view);
  }
  input.states = states_of(unit);
  input.plan = std::make_shared<Plan>(build_dense_plan(views, network.plan_shape()));
  return input;
}

// A refined plan with an input row for each class of nodes.
inline UnitInput refined_unit(const Network& network, const RepeatedUnit& unit,
                              int hash_bits = 64) {
  UnitInput input;
  std::vector<RefinedGraph> refined;
  refined.reserve(unit.graphs.size());
  std::vector<std::vector<std::int32_t>> state_class;
  for (const RepeatedGraph& graph : unit.graphs) {
    const auto node_class = classes_of_rows(graph.features, kNodeFeatures, graph.opcodes);
    input.graphs.push_back(inputs_of_classes(network, graph, node_class));
    refined.emplace_back(graph.nodes, graph.edges, graph.config_nodes, std::vector(node_class),
                         network.plan_shape(),
                         contracted_edges(graph.nodes, graph.edges, graph.config_nodes));
    state_class.push_back(classes_of_rows(graph.states, network.schema().config_features));
  }
  const auto begins = input_begins(unit, [&](std::size_t g) { return refined[g].classes(); });
  std::vector<RefinedSlate> views;
  for (const RepeatedSlate& slate : unit.slates) {
    views.push_back({&refined[slate.graph], slate.configs, slate.states, state_class[slate.graph],
                     unit.graphs[slate.graph].state_rows, begins[slate.graph]});
  }
  input.states = states_of(unit);
  input.plan = std::make_shared<Plan>(build_refined_plan(views, hash_bits));
  return input;
}

// A dense plan with an input row for each class of nodes.
inline UnitInput dense_unit_of_classes(const Network& network, const RepeatedUnit& unit) {
  UnitInput input;
  std::vector<std::vector<std::int32_t>> node_class;
  for (const RepeatedGraph& graph : unit.graphs) {
    node_class.push_back(classes_of_rows(graph.features, kNodeFeatures, graph.opcodes));
    input.graphs.push_back(inputs_of_classes(network, graph, node_class.back()));
  }
  const auto begins = input_begins(unit, [&](std::size_t g) { return input.graphs[g]->nodes(); });
  std::vector<PlanSlate> views;
  const auto config_edges = config_edges_of(unit);
  for (const RepeatedSlate& slate : unit.slates) {
    const RepeatedGraph& graph = unit.graphs[slate.graph];
    views.push_back({graph.nodes, graph.edges, graph.config_nodes, slate.configs, slate.states,
                     graph.state_rows, node_class[slate.graph], input.graphs[slate.graph]->nodes(),
                     begins[slate.graph], config_edges[slate.graph]});
  }
  input.states = states_of(unit);
  input.plan = std::make_shared<Plan>(build_dense_plan(views, network.plan_shape()));
  return input;
}

// The unit of training with equal inputs merged: a refined plan, or a dense plan if dropout draws
// for every (node, configuration).
inline UnitInput compact_unit(const Network& network, const RepeatedUnit& unit) {
  return network.plan_shape().per_element ? dense_unit_of_classes(network, unit)
                                          : refined_unit(network, unit);
}

}  // namespace tpudist::test
