#include "models/plans/dense_plan.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "models/plans/csr.hpp"
#include "models/plans/graph_edges.hpp"

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

// How many replicas one matrix serves: the configurations of each slate where all slates have
// as many; otherwise 1.
std::int64_t common_replicas(std::span<const PlanSlate> slates) {
  for (const PlanSlate& slate : slates) {
    if (slate.configs != slates[0].configs) return 1;
  }
  return slates.empty() ? 1 : slates[0].configs;
}

// The edges of a graph, and up to which layer each node is needed.
struct GraphShape {
  GraphShape(const PlanSlate& slate, const PlanShape& shape)
      : edges(slate.nodes, slate.edges),
        level(needed_levels(edges, reached_nodes(edges, slate.config_nodes, shape).back(), shape)) {
  }
  GraphEdges edges;
  std::vector<std::int32_t> level;  // [nodes]
};

bool same_graph(const PlanSlate& a, const PlanSlate& b) {
  return a.nodes == b.nodes && a.edges.data() == b.edges.data() &&
         a.edges.size() == b.edges.size() && a.config_nodes.data() == b.config_nodes.data() &&
         a.config_nodes.size() == b.config_nodes.size();
}

// Where the rows of all (slate, node) lie: place after place, a row for each configuration.
class DenseRows {
 public:
  struct Place {
    std::int32_t slate, node;
  };

  DenseRows(std::span<const PlanSlate> slates, const PlanShape& shape)
      : slates_(slates), replicas_(common_replicas(slates)) {
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
    std::vector<std::int64_t> next =
        needed_places_;  // a level's places begin behind the higher ones
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

  const std::vector<Place>& places() const { return places_; }
  std::int64_t rows() const { return begin_.back(); }
  std::int64_t replicas() const { return replicas_; }
  // Rows needed before a layer, or behind the last.
  std::int64_t needed(std::size_t layer) const { return begin_[needed_places_[layer]]; }
  std::int64_t needed_places(std::size_t layer) const { return needed_places_[layer]; }
  std::int64_t first_row(std::int64_t place) const { return begin_[place]; }
  std::int64_t first_row(std::size_t slate, std::int32_t node) const {
    return begin_[place_[slate][node]];
  }
  const GraphEdges& edges(std::size_t slate) const { return graph_[slate]->edges; }

 private:
  std::span<const PlanSlate> slates_;
  std::int64_t replicas_;
  std::vector<std::shared_ptr<const GraphShape>> graph_;  // [slates]
  std::vector<std::vector<std::int32_t>> place_;          // [slates][nodes]
  std::vector<Place> places_;
  std::vector<std::int64_t> begin_;          // [places + 1] first row
  std::vector<std::int64_t> needed_places_;  // [depth + 1]
};

// The input row of every row's node, and the sizes of the plan. Returns where each slate's states
// begin.
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

// The state of every row, and of every configuration that has one state.
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

// One edge set along the graphs over all slates: every row takes the rows at the other ends of its edges. Parallel
// edges are merged by multiplicity, so that the sum of a row's weights stays exact.
EdgeSet make_graph_set(std::span<const PlanSlate> slates, EdgeKind direction,
                       Aggregation aggregation, const DenseRows& rows) {
  EdgeSet set;
  Csr& matrix = set.aggregate.forward;
  matrix.begin.push_back(0);
  std::vector<std::int64_t> sources;
  for (const auto& [s, node] : rows.places()) {
    sources.clear();
    for (const std::int32_t source : rows.edges(s).of(direction).of(node)) {
      sources.push_back(rows.first_row(s, source));
    }
    std::sort(sources.begin(), sources.end());
    const double divisor =
        aggregation == Aggregation::mean ? static_cast<double>(sources.size()) : 1.0;
    const std::int64_t copies = slates[s].configs / rows.replicas();  // 1, or K: rows written out
    for (std::int64_t k = 0; k < copies; ++k) {
      for (std::size_t i = 0; i < sources.size();) {
        std::size_t end = i;
        while (end < sources.size() && sources[end] == sources[i]) ++end;
        matrix.source.push_back(to_index32(sources[i] / rows.replicas() + k));
        matrix.weight.push_back(static_cast<float>(static_cast<double>(end - i) / divisor));
        i = end;
      }
      matrix.begin.push_back(matrix.entries());
    }
  }
  set.aggregate.replicas = static_cast<std::int32_t>(rows.replicas());
  set.aggregate.transposed = transpose(matrix, rows.rows() / rows.replicas());
  return set;
}

// Every row takes all rows of its configuration. With replicas the matrix has one row for each
// slate, otherwise one for each configuration.
EdgeSet make_nodes_set(std::span<const PlanSlate> slates, const DenseRows& rows) {
  EdgeSet set;
  Csr& matrix = set.aggregate.forward;
  matrix.begin.push_back(0);
  std::vector<std::vector<std::int64_t>> first_rows(slates.size());
  for (const auto& [s, node] : rows.places()) first_rows[s].push_back(rows.first_row(s, node));
  std::vector<std::int64_t> first_neighbourhood;
  std::int64_t neighbourhoods = 0;
  for (std::size_t s = 0; s < slates.size(); ++s) {
    first_neighbourhood.push_back(neighbourhoods);
    neighbourhoods += slates[s].configs;
    for (std::int64_t k = 0; k < slates[s].configs / rows.replicas(); ++k) {
      for (const std::int64_t row : first_rows[s])
        matrix.source.push_back(to_index32(row / rows.replicas() + k));
      matrix.begin.push_back(matrix.entries());
    }
  }
  set.aggregate.replicas = static_cast<std::int32_t>(rows.replicas());
  set.aggregate.transposed = transpose(matrix, rows.rows() / rows.replicas());
  for (const auto& [s, node] : rows.places()) {
    for (std::int64_t k = 0; k < slates[s].configs; ++k)
      set.neighbourhood.index.push_back(to_index32(first_neighbourhood[s] + k));
  }
  set.neighbourhood.transposed = transpose_index(set.neighbourhood.index, neighbourhoods);
  return set;
}

// Every row takes the rows of its node in all configurations of the slate.
EdgeSet make_configs_set(std::span<const PlanSlate> slates, const DenseRows& rows) {
  EdgeSet set;
  Csr& matrix = set.aggregate.forward;
  matrix.begin.push_back(0);
  std::int64_t place = 0;
  for (const auto& [s, node] : rows.places()) {
    for (std::int64_t k = 0; k < slates[s].configs; ++k) {
      matrix.source.push_back(to_index32(rows.first_row(place) + k));
      set.neighbourhood.index.push_back(to_index32(place));
    }
    matrix.begin.push_back(matrix.entries());
    ++place;
  }
  set.aggregate.transposed = transpose(matrix, rows.rows());
  set.neighbourhood.transposed = transpose_index(set.neighbourhood.index, place);
  return set;
}

EdgeSet make_edge_set(std::span<const PlanSlate> slates, EdgeKind kind, Aggregation aggregation,
                      const DenseRows& rows) {
  if (kind == EdgeKind::nodes) return make_nodes_set(slates, rows);
  if (kind == EdgeKind::configs) return make_configs_set(slates, rows);
  return make_graph_set(slates, kind, aggregation, rows);
}

// How many neighbourhoods of an edge set are needed, when the first `places` places behind the
// layer are.
std::int64_t needed_neighbourhoods(const EdgeSet& set, EdgeKind kind, const DenseRows& rows,
                                   std::int64_t places) {
  if (kind == EdgeKind::configs) return places;
  if (kind == EdgeKind::nodes)
    return places ? set.aggregate.forward.rows() * set.aggregate.replicas : 0;
  return rows.first_row(places);
}

// 0, 1, ... n
std::vector<std::int64_t> offsets_to(std::int64_t n) {
  std::vector<std::int64_t> offsets(n + 1);
  std::iota(offsets.begin(), offsets.end(), 0);
  return offsets;
}

// One cell for each configuration: its needed rows. Of a node that is not needed the first
// configuration's row is common to the slate.
Readout make_readout(std::span<const PlanSlate> slates, bool mean, const DenseRows& rows,
                     std::size_t depth) {
  Readout readout;
  std::vector<std::vector<std::int64_t>> cell_rows(slates.size());  // of the first configuration
  std::vector<std::vector<std::int64_t>> common_rows(slates.size());
  std::int64_t place = 0;
  for (const auto& [s, node] : rows.places()) {
    (place < rows.needed_places(depth) ? cell_rows : common_rows)[s].push_back(
        rows.first_row(place));
    ++place;
  }
  readout.cells.forward.begin.push_back(0);
  readout.common.forward.begin.push_back(0);
  for (std::size_t s = 0; s < slates.size(); ++s) {
    const float weight = mean ? static_cast<float>(1.0 / slates[s].nodes) : 1.0f;
    for (std::int64_t k = 0; k < slates[s].configs; ++k) {
      for (const std::int64_t row : cell_rows[s]) {
        readout.cells.forward.source.push_back(to_index32(row + k));
      }
      readout.cells.forward.begin.push_back(readout.cells.forward.entries());
      readout.slate_of_config.push_back(static_cast<std::int32_t>(s));
    }
    readout.cells.forward.weight.resize(readout.cells.forward.source.size(), weight);
    for (const std::int64_t row : common_rows[s]) {
      readout.common.forward.source.push_back(to_index32(row));
    }
    readout.common.forward.begin.push_back(readout.common.forward.entries());
    readout.common.forward.weight.resize(readout.common.forward.source.size(), weight);
  }
  readout.cells.transposed = transpose(readout.cells.forward, rows.rows());
  readout.common.transposed = transpose(readout.common.forward, rows.rows());
  const auto configs = static_cast<std::int64_t>(readout.slate_of_config.size());
  std::vector<std::int32_t> every(configs);
  std::iota(every.begin(), every.end(), 0);
  readout.scores.forward = readout.scores.transposed = {offsets_to(configs), every, {}};
  return readout;
}

}  // namespace

Plan build_dense_plan(std::span<const PlanSlate> slates, const PlanShape& shape) {
  for (const PlanSlate& slate : slates) check_slate(slate);
  const DenseRows rows(slates, shape);
  Plan plan;
  const std::vector<std::int64_t> first_state = fill_first_rows(slates, rows, plan);
  const std::vector<std::int32_t> states = states_of_rows(slates, rows, first_state);
  plan.state = shape.early_join ? states : std::vector<std::int32_t>(states.size(), -1);
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
        made_layer->edges.push_back(make_edge_set(slates, kind, layer.aggregation, rows));
      if (layer.joins_states) {
        made_layer->state = states;
        made_layer->rows_of_state = transpose_index(states, plan.states);
      }
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
  plan.readout = make_readout(slates, shape.mean_readout, rows, shape.layers.size());
  return plan;
}

}  // namespace tpudist
