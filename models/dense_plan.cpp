#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

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

// The edges of one slate as (taker, source), sorted.
std::vector<std::pair<std::int32_t, std::int32_t>> sorted_edges(const PlanSlate& slate,
                                                                EdgeDirection direction) {
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;
  edges.reserve(slate.edges.size() / 2);
  const bool to_producer = direction == EdgeDirection::consumer_to_producer;
  for (std::size_t e = 0; e < slate.edges.size(); e += 2) {
    const std::int32_t consumer = slate.edges[e], producer = slate.edges[e + 1];
    edges.emplace_back(to_producer ? producer : consumer, to_producer ? consumer : producer);
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

// One edge set over all slates: every row takes the rows at the other ends of its edges. Parallel
// edges are merged by multiplicity, so that the sum of a row's weights stays exact.
EdgeSet make_edge_set(std::span<const PlanSlate> slates, EdgeDirection direction,
                      Aggregation aggregation, std::int64_t rows, std::int64_t lanes) {
  EdgeSet set;
  set.needed = rows;
  Csr& in = set.sum.in;
  in.begin.push_back(0);
  std::int64_t base = 0;
  for (const PlanSlate& slate : slates) {
    const auto edges = sorted_edges(slate, direction);
    const std::int64_t copies = slate.configs / lanes;  // 1, or K where rows are written out
    auto next = edges.begin();
    for (std::int64_t node = 0; node < slate.nodes; ++node) {
      const auto first = next;
      while (next != edges.end() && next->first == node) ++next;
      const double divisor =
          aggregation == Aggregation::mean ? static_cast<double>(next - first) : 1.0;
      for (std::int64_t k = 0; k < copies; ++k) {
        for (auto edge = first; edge != next;) {
          const auto same = std::find_if(edge, next, [&](const auto& e) { return e != *edge; });
          in.source.push_back(to_index32(base + edge->second * copies + k));
          in.weight.push_back(static_cast<float>(static_cast<double>(same - edge) / divisor));
          edge = same;
        }
        in.begin.push_back(in.entries());
      }
    }
    base += slate.nodes * copies;
  }
  set.sum.lanes = static_cast<std::int32_t>(lanes);
  set.sum.out = transpose(in, rows / lanes);
  return set;
}

// 0, step, 2 * step, ... to n * step
std::vector<std::int64_t> even_offsets(std::int64_t n, std::int64_t step) {
  std::vector<std::int64_t> offsets(n + 1);
  for (std::int64_t i = 0; i <= n; ++i) offsets[i] = i * step;
  return offsets;
}

// One cell for each configuration: all its rows.
Readout make_readout(std::span<const PlanSlate> slates, bool mean, std::int64_t rows) {
  Readout readout;
  Csr &cells = readout.cells.in, &rows_to_cells = readout.cells.out;
  cells.begin.push_back(0);
  cells.source.resize(rows);
  cells.weight.resize(rows);
  rows_to_cells = {even_offsets(rows, 1), std::vector<std::int32_t>(rows), {}};
  rows_to_cells.weight.resize(rows);
  std::int64_t base = 0, config = 0;
  for (std::size_t s = 0; s < slates.size(); ++s) {
    const std::int64_t nodes = slates[s].nodes, configs = slates[s].configs;
    const float weight = mean ? static_cast<float>(1.0 / nodes) : 1.0f;
    for (std::int64_t k = 0; k < configs; ++k) {
      for (std::int64_t node = 0; node < nodes; ++node) {
        cells.source[base + k * nodes + node] = to_index32(base + node * configs + k);
      }
      cells.begin.push_back(base + (k + 1) * nodes);
      readout.slate_of_config.push_back(static_cast<std::int32_t>(s));
    }
    for (std::int64_t i = 0; i < nodes * configs; ++i) {
      rows_to_cells.source[base + i] = to_index32(config + i % configs);
      cells.weight[base + i] = rows_to_cells.weight[base + i] = weight;
    }
    base += nodes * configs;
    config += configs;
  }
  std::vector<std::int32_t> every(config);
  std::iota(every.begin(), every.end(), 0);
  readout.pool.in = readout.pool.out = {even_offsets(config, 1), every, {}};
  readout.common.in.begin.assign(slates.size() + 1, 0);
  readout.common.out.begin.assign(rows + 1, 0);
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
    const std::int64_t inputs = slate.input_row.empty() ? slate.nodes : slate.input_rows;
    const std::int64_t begin = slate.input_begin < 0 ? plan.nodes : slate.input_begin;
    for (std::int64_t node = 0; node < slate.nodes; ++node) {
      const std::int64_t input = slate.input_row.empty() ? node : slate.input_row[node];
      plan.node.insert(plan.node.end(), slate.configs, to_index32(begin + input));
    }
    append_states(slate, plan.states, plan.state);
    plan.nodes = std::max(plan.nodes, begin + inputs);
    plan.states += slate.state_rows;
    plan.configs += slate.configs;
  }
  plan.rows_of_node = rows_of(plan.node, plan.nodes);
  plan.rows_of_state = rows_of(plan.state, plan.states);

  const std::int64_t rows = plan.first_rows(), lanes = common_lanes(slates);
  plan.needed = rows;
  std::vector<std::pair<LayerShape, std::shared_ptr<const Step>>> made;
  for (const LayerShape& layer : shape.layers) {
    const auto known = std::find_if(made.begin(), made.end(),
                                    [&](const auto& entry) { return entry.first == layer; });
    if (known != made.end()) {
      plan.steps.push_back(known->second);
      continue;
    }
    auto step = std::make_shared<Step>();
    step->rows_in = step->rows_out = step->needed = step->needed_pasts = rows;
    for (const EdgeDirection direction : layer.directions) {
      step->edges.push_back(make_edge_set(slates, direction, layer.aggregation, rows, lanes));
    }
    made.emplace_back(layer, step);
    plan.steps.push_back(std::move(step));
  }
  plan.readout = make_readout(slates, shape.mean_readout, rows);
  return plan;
}

}  // namespace tpudist
