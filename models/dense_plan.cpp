#include <algorithm>
#include <map>
#include <string>

#include "core/error.hpp"
#include "models/csr.hpp"
#include "models/plan.hpp"

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
  const std::size_t configs = slate.configs, per_config = slate.config_nodes.size();
  const bool stateless = per_config == 0 && slate.states.empty();
  if (!stateless && slate.states.size() != configs * std::max<std::size_t>(per_config, 1)) {
    fail("the number of states is not configurations x configurable nodes");
  }
}

// Configurations per node as lanes of one matrix, where all slates have as many; otherwise 1.
std::int64_t common_lanes(std::span<const PlanSlate> slates) {
  for (const PlanSlate& slate : slates) {
    if (slate.configs != slates[0].configs) return 1;
  }
  return slates.empty() ? 1 : slates[0].configs;
}

// The state of each node in each configuration, [nodes, K], numbered from `first_state`.
void append_states(const PlanSlate& slate, std::int64_t first_state,
                   std::vector<std::int32_t>& state) {
  const std::int64_t configs = slate.configs, at = state.size();
  const std::int64_t config_nodes = slate.config_nodes.size();
  state.resize(at + slate.nodes * configs, -1);
  if (slate.states.empty()) return;
  const auto set = [&](std::int64_t node, std::int64_t k, std::int32_t value) {
    state[at + node * configs + k] = to_index32(first_state + value);
  };
  for (std::int64_t k = 0; k < configs; ++k) {
    for (std::int64_t j = 0; j < config_nodes; ++j) {
      set(slate.config_nodes[j], k, slate.states[k * config_nodes + j]);
    }
    if (config_nodes) continue;
    for (std::int64_t node = 0; node < slate.nodes; ++node) set(node, k, slate.states[k]);
  }
}

// One edge set over all slates: every row takes the rows at the other ends of its edges.
Relation make_relation(std::span<const PlanSlate> slates, EdgeDirection direction,
                       Aggregation aggregation, std::int64_t rows, std::int64_t lanes) {
  std::vector<CsrEntry> entries;
  std::int64_t base = 0;
  const bool to_producer = direction == EdgeDirection::consumer_to_producer;
  for (const PlanSlate& slate : slates) {
    std::vector<std::int64_t> degree(slate.nodes, 0);
    const auto ends = [&](std::size_t e) {
      const std::int32_t consumer = slate.edges[e], producer = slate.edges[e + 1];
      return to_producer ? std::pair(producer, consumer) : std::pair(consumer, producer);
    };
    for (std::size_t e = 0; e < slate.edges.size(); e += 2) ++degree[ends(e).first];
    // Parallel edges are merged by multiplicity, so that the sum of a row's weights stays exact.
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> count;
    for (std::size_t e = 0; e < slate.edges.size(); e += 2) ++count[ends(e)];
    const std::int64_t copies = slate.configs / lanes;  // 1, or K where rows are written out
    for (const auto& [edge, times] : count) {
      const double divisor = aggregation == Aggregation::mean ? degree[edge.first] : 1;
      const float weight = static_cast<float>(times / divisor);
      for (std::int64_t k = 0; k < copies; ++k) {
        entries.push_back({to_index32(base + edge.first * copies + k),
                           to_index32(base + edge.second * copies + k), weight});
      }
    }
    base += slate.nodes * copies;
  }
  Relation relation;
  relation.lanes = static_cast<std::int32_t>(lanes);
  relation.in = make_csr(rows / lanes, entries);
  relation.out = transpose(relation.in, rows / lanes);
  return relation;
}

Readout make_readout(std::span<const PlanSlate> slates, bool mean, std::int64_t rows) {
  Readout readout;
  readout.pool.begin.push_back(0);
  readout.pool.source.reserve(rows);
  readout.pool.weight.reserve(rows);
  std::int64_t base = 0;
  for (std::size_t s = 0; s < slates.size(); ++s) {
    const std::int64_t nodes = slates[s].nodes, configs = slates[s].configs;
    const float weight = mean ? static_cast<float>(1.0 / nodes) : 1.0f;
    for (std::int64_t k = 0; k < configs; ++k) {
      for (std::int64_t node = 0; node < nodes; ++node) {
        readout.pool.source.push_back(to_index32(base + node * configs + k));
        readout.pool.weight.push_back(weight);
      }
      readout.pool.begin.push_back(readout.pool.entries());
      readout.slate_of_config.push_back(static_cast<std::int32_t>(s));
    }
    base += nodes * configs;
  }
  readout.transpose = transpose(readout.pool, rows);
  readout.common.begin.assign(slates.size() + 1, 0);
  readout.common_transpose.begin.assign(rows + 1, 0);
  return readout;
}

}  // namespace

std::int64_t dense_plan_rows(std::span<const PlanSlate> slates, const PlanShape& shape) {
  std::int64_t rows = 0;
  for (const PlanSlate& slate : slates) rows += slate.nodes * slate.configs;
  return rows * static_cast<std::int64_t>(shape.layers.size() + 1);
}

Plan build_dense_plan(std::span<const PlanSlate> slates, const PlanShape& shape) {
  Plan plan;
  for (const PlanSlate& slate : slates) {
    check_slate(slate);
    for (std::int64_t node = 0; node < slate.nodes; ++node) {
      plan.node.insert(plan.node.end(), slate.configs, to_index32(plan.nodes + node));
    }
    append_states(slate, plan.states, plan.state);
    plan.nodes += slate.nodes;
    plan.states += slate.state_rows;
    plan.configs += slate.configs;
  }
  plan.rows_of_node = rows_of(plan.node, plan.nodes);
  plan.rows_of_state = rows_of(plan.state, plan.states);

  const std::int64_t rows = plan.first_rows(), lanes = common_lanes(slates);
  std::vector<std::pair<LayerShape, std::shared_ptr<const Step>>> made;
  for (const LayerShape& layer : shape.layers) {
    const auto known = std::find_if(made.begin(), made.end(),
                                    [&](const auto& entry) { return entry.first == layer; });
    if (known != made.end()) {
      plan.steps.push_back(known->second);
      continue;
    }
    auto step = std::make_shared<Step>();
    step->rows_in = step->rows_out = rows;
    for (const EdgeDirection direction : layer.directions) {
      step->edges.push_back(make_relation(slates, direction, layer.aggregation, rows, lanes));
    }
    made.emplace_back(layer, step);
    plan.steps.push_back(std::move(step));
  }
  plan.readout = make_readout(slates, shape.mean_readout, rows);
  return plan;
}

}  // namespace tpudist
