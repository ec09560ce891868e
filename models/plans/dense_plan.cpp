#include "models/plans/build_plan.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "models/plans/csr.hpp"
#include "models/plans/dense_rows.hpp"

namespace tpudist {
namespace {

void check_slate(const PlanSlate& slate) {
  const auto fail = [](const std::string& what) {
    throw Error(ErrorKind::failed, "cannot plan a slate: " + what);
  };
  if (slate.nodes <= 0 || slate.configs <= 0) fail("it has no nodes or no configurations");
  if (slate.edges.size() % 2) fail("an edge needs two ends");
  const auto outside = [](std::span<const std::int32_t> values, std::int64_t limit) {
    return std::any_of(values.begin(), values.end(),
                       [&](std::int32_t v) { return v < 0 || v >= limit; });
  };
  if (outside(slate.edges, slate.nodes)) fail("an edge leaves the graph");
  if (outside(slate.config_nodes, slate.nodes)) fail("a configurable node is not in the graph");
  if (outside(slate.states, slate.state_rows)) fail("a state is not in the state table");
  if (outside(slate.input_row, slate.input_rows)) fail("an input row is not in the graph's inputs");
  if (!slate.input_row.empty() &&
      static_cast<std::int64_t>(slate.input_row.size()) != slate.nodes) {
    fail("the number of input rows is not the number of nodes");
  }
  const std::size_t configs = slate.configs, per_config = slate.config_nodes.size();
  const bool stateless = per_config == 0 && slate.states.empty();
  if (!stateless && slate.states.size() != configs * std::max<std::size_t>(per_config, 1)) {
    fail("the number of states is not configurations x configurable nodes");
  }
}

// Sets the input row of every row's node, and the sizes of the plan. Returns where each slate's
// states begin.
std::vector<std::int64_t> fill_first_rows(std::span<const PlanSlate> slates, const DenseRows& rows,
                                          Plan& plan) {
  std::vector<std::int64_t> first_input, first_state;
  for (const PlanSlate& slate : slates) {
    const std::int64_t inputs = slate.input_row.empty() ? slate.nodes : slate.input_rows;
    first_input.push_back(slate.input_begin < 0 ? plan.nodes : slate.input_begin);
    first_state.push_back(plan.states);
    plan.nodes = std::max(plan.nodes, first_input.back() + inputs);
    plan.states += slate.state_rows;
    plan.configs += slate.configs;
  }
  for (const auto& [s, node] : rows.places()) {
    const std::int64_t input = slates[s].input_row.empty() ? node : slates[s].input_row[node];
    plan.node.insert(plan.node.end(), slates[s].configs, to_index32(first_input[s] + input));
  }
  return first_state;
}

// The state of every row; -1: none.
std::vector<std::int32_t> states_of_rows(std::span<const PlanSlate> slates, const DenseRows& rows,
                                         std::span<const std::int64_t> first_state) {
  std::vector<std::int32_t> states(rows.rows(), -1);
  for (std::size_t s = 0; s < slates.size(); ++s) {
    const PlanSlate& slate = slates[s];
    if (slate.states.empty()) continue;
    const std::int64_t config_nodes = slate.config_nodes.size();
    const auto set = [&](std::int32_t node, std::int64_t k, std::int32_t state) {
      states[rows.first_row(s, node) + k] = to_index32(first_state[s] + state);
    };
    for (std::int64_t k = 0; k < slate.configs; ++k) {
      for (std::int64_t j = 0; j < config_nodes; ++j) {
        set(slate.config_nodes[j], k, slate.states[k * config_nodes + j]);
      }
      for (std::int32_t node = 0; config_nodes == 0 && node < slate.nodes; ++node) {
        set(node, k, slate.states[k]);
      }
    }
  }
  return states;
}

// The configuration of every row.
std::vector<std::int32_t> configs_of_rows(std::span<const PlanSlate> slates,
                                          const DenseRows& rows) {
  std::vector<std::int64_t> first_config{0};
  for (const PlanSlate& slate : slates) first_config.push_back(first_config.back() + slate.configs);
  std::vector<std::int32_t> configs;
  for (const auto& [s, node] : rows.places()) {
    for (std::int64_t k = 0; k < slates[s].configs; ++k)
      configs.push_back(to_index32(first_config[s] + k));
  }
  return configs;
}

std::vector<std::int32_t> states_of_configs(std::span<const PlanSlate> slates,
                                            std::span<const std::int64_t> first_state) {
  std::vector<std::int32_t> states;
  for (std::size_t s = 0; s < slates.size(); ++s) {
    if (!slates[s].config_nodes.empty() || slates[s].states.empty()) return {};
    for (const std::int32_t state : slates[s].states)
      states.push_back(to_index32(first_state[s] + state));
  }
  return states;
}

}  // namespace

Plan build_dense_plan(std::span<const PlanSlate> slates, const PlanShape& shape) {
  for (const PlanSlate& slate : slates) check_slate(slate);
  const DenseRows rows(slates, shape);
  Plan plan;
  const std::vector<std::int64_t> first_state = fill_first_rows(slates, rows, plan);
  const std::vector<std::int32_t> states = states_of_rows(slates, rows, first_state);
  plan.state = shape.early_join ? states : std::vector<std::int32_t>(states.size(), -1);
  if (shape.per_element) plan.config = configs_of_rows(slates, rows);
  plan.state_of_config = states_of_configs(slates, first_state);
  plan.rows_of_node = transpose_index(plan.node, plan.nodes);
  plan.rows_of_state = transpose_index(plan.state, plan.states);
  plan.needed_first_rows = rows.needed(0);
  std::vector<std::pair<LayerShape, std::shared_ptr<const PlanLayer>>> made;
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    const LayerShape& layer = shape.layers[i];
    const auto known = std::find_if(made.begin(), made.end(),
                                    [&](const auto& entry) { return entry.first == layer; });
    if (known == made.end()) {
      auto made_layer = std::make_shared<PlanLayer>();
      made_layer->rows_in = made_layer->rows_out = rows.rows();
      for (const EdgeKind kind : layer.edge_kinds)
        made_layer->edges.push_back(make_dense_edge_set(slates, kind, layer.aggregation, rows));
      if (layer.joins_states) made_layer->state = states;
      made.emplace_back(layer, made_layer);
      plan.layers.push_back(std::move(made_layer));
    } else {
      plan.layers.push_back(known->second);
    }
    const std::int64_t needed = rows.needed(i + 1);
    NeededCounts& counts = plan.needed_counts.emplace_back(NeededCounts{needed, needed, {}});
    for (std::size_t set = 0; set < layer.edge_kinds.size(); ++set) {
      counts.neighbourhoods.push_back(needed_neighbourhoods(
          plan.layers[i]->edges[set], layer.edge_kinds[set], rows, rows.needed_places(i + 1)));
    }
  }
  plan.readout = make_dense_readout(slates, shape.mean_readout, rows, shape.layers.size());
  return plan;
}

}  // namespace tpudist
