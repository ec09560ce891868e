#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/layers/layer.hpp"
#include "models/plans/build_plan.hpp"
#include "models/plans/graph_edges.hpp"
#include "models/plans/row_keys.hpp"
#include "tests/support/contracted_edges.hpp"

namespace tpudist::test {

// A graph with configurations, as plan builders expect it.
struct LayerGraph {
  std::int64_t nodes = 0, configs = 0, state_rows = 0;
  std::vector<std::int32_t> edges, config_nodes, node_class, codes;

  std::vector<std::int32_t> config_edges() const {
    return contracted_edges(nodes, edges, config_nodes);
  }
  std::int64_t classes() const { return 1 + *std::ranges::max_element(node_class); }
};

// A plan written by hand: a row for each (configuration, node) at every depth, in this order.
inline Plan plain_plan(const LayerGraph& graph, const PlanShape& shape) {
  Plan plan;
  const std::int64_t rows = graph.configs * graph.nodes;
  plan.nodes = graph.classes();
  plan.states = graph.state_rows;
  plan.configs = graph.configs;
  const auto width = static_cast<std::int64_t>(graph.config_nodes.size());
  std::vector<std::int32_t> states(static_cast<std::size_t>(rows), -1);
  for (std::int64_t k = 0; k < graph.configs; ++k) {
    plan.node.insert(plan.node.end(), graph.node_class.begin(), graph.node_class.end());
    for (std::int64_t j = 0; j < width; ++j)
      states[k * graph.nodes + graph.config_nodes[j]] = graph.codes[k * width + j];
    plan.readout.slate_of_config.push_back(0);
  }
  plan.state = shape.early_join ? states : std::vector<std::int32_t>(states.size(), -1);
  plan.rows_of_node = transpose_index(plan.node, plan.nodes);
  plan.rows_of_state = transpose_index(plan.state, plan.states);
  const GraphEdges edges(graph.nodes, graph.edges, graph.config_edges());
  for (const LayerShape& layer : shape.layers) {
    auto made = std::make_shared<PlanLayer>();
    made->rows_in = made->rows_out = rows;
    for (const EdgeKind kind : layer.edge_kinds) {
      EdgeSet& set = made->edges.emplace_back();
      Csr& matrix = set.aggregate.forward;
      matrix.begin.push_back(0);
      const std::int64_t groups = kind == EdgeKind::nodes     ? graph.configs
                                  : kind == EdgeKind::configs ? graph.nodes
                                                              : rows;
      for (std::int64_t g = 0; g < groups; ++g) {
        std::map<std::int64_t, float> sources;
        if (kind == EdgeKind::nodes) {
          for (std::int64_t n = 0; n < graph.nodes; ++n) sources[g * graph.nodes + n] = 1;
        } else if (kind == EdgeKind::configs) {
          for (std::int64_t k = 0; k < graph.configs; ++k) sources[k * graph.nodes + g] = 1;
        } else {
          const std::int64_t first = g / graph.nodes * graph.nodes;
          for (const std::int32_t s : edges.of(kind).of(static_cast<std::int32_t>(g - first)))
            sources[first + s] += 1;
        }
        for (const auto& [source, count] : sources) {
          matrix.source.push_back(to_index32(source));
          matrix.weight.push_back(count);
        }
        matrix.begin.push_back(matrix.entries());
      }
      set.aggregate.transposed = transpose(matrix, rows);
      if (along_graph(kind)) continue;
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t group = kind == EdgeKind::nodes ? row / graph.nodes : row % graph.nodes;
        set.neighbourhood.index.push_back(to_index32(group));
      }
      set.neighbourhood.transposed = transpose_index(set.neighbourhood.index, groups);
    }
    if (layer.joins_states) made->state = states;
    plan.layers.push_back(std::move(made));
  }
  return plan;
}

inline Plan dense_plan_of(const LayerGraph& graph, const PlanShape& shape) {
  PlanSlate slate{graph.nodes, graph.edges,      graph.config_nodes, graph.configs,
                  graph.codes, graph.state_rows, graph.node_class,   graph.classes()};
  const std::vector<std::int32_t> config_edges = graph.config_edges();
  slate.config_edges = config_edges;
  return build_dense_plan({&slate, 1}, shape);
}

inline Plan refined_plan_of(const LayerGraph& graph, const PlanShape& shape) {
  const RefinedGraph refined(graph.nodes, graph.edges, graph.config_nodes,
                             std::vector(graph.node_class), shape, graph.config_edges());
  std::vector<std::int32_t> classes;
  for (std::int64_t s = 0; s < graph.state_rows; ++s) classes.push_back(static_cast<int>(s));
  const RefinedSlate slate{&refined, graph.configs, graph.codes, classes, graph.state_rows};
  return build_refined_plan({&slate, 1});
}

// The row of `plan` after its last layer for every (configuration, node), found by content: rows of
// equal content hold equal numbers.
inline std::vector<std::int64_t> rows_of_pairs(const LayerGraph& graph, const PlanShape& shape,
                                               const Plan& plan) {
  std::vector<std::uint64_t> nodes, states;
  for (std::int64_t i = 0; i < graph.classes(); ++i) nodes.push_back(1000 + i);
  for (std::int64_t i = 0; i < graph.state_rows; ++i) states.push_back(5000 + i);
  const auto plain = row_keys(plain_plan(graph, shape), nodes, states).back();
  const auto keys = row_keys(plan, nodes, states).back();
  std::map<std::uint64_t, std::int64_t> row_of;
  for (std::size_t row = 0; row < keys.size(); ++row)
    row_of[keys[row]] = static_cast<std::int64_t>(row);
  std::vector<std::int64_t> rows;
  for (const std::uint64_t key : plain) rows.push_back(row_of.at(key));
  return rows;
}

}  // namespace tpudist::test
