#include "models/plans/slate_refiner.hpp"

#include <algorithm>

#include "models/plans/csr.hpp"
#include "models/plans/pair_table.hpp"

namespace tpudist {

SlateRefiner::SlateRefiner(const GraphSlates& graph_slates, std::span<const RefinedSlate> slates,
                           std::span<const SlateOffsets> offsets, int hash_bits)
    : graph_(*graph_slates.graph),
      graph_slates_(graph_slates),
      slates_(slates),
      offsets_(offsets),
      hash_bits_(hash_bits),
      partitions_(graph_slates.configs),
      of_node_(graph_.nodes()) {
  label_configs();
}

void SlateRefiner::label_configs() {
  const Array<std::int32_t>& config_nodes = graph_.config_nodes();
  if (config_nodes.empty()) {
    states_.push_back(label_configs(0));
    return;
  }
  states_.emplace_back();
  node_states_.assign(graph_.nodes(), 0);
  for (std::size_t j = 0; j < config_nodes.size(); ++j) {
    node_states_[config_nodes[j]] = static_cast<std::int32_t>(states_.size());
    states_.push_back(label_configs(j));
  }
}

// Lists, for every configuration, the class of its state at one configurable node, and the state's
// row in the plan.
SlateRefiner::NodeStates SlateRefiner::label_configs(std::size_t config_index) {
  const std::size_t width = std::max<std::size_t>(graph_.config_nodes().size(), 1);
  NodeStates states;
  for (const std::size_t s : graph_slates_.slates) {
    for (std::int64_t k = 0; k < slates_[s].configs; ++k) {
      const std::int32_t state = slates_[s].states[k * width + config_index];
      states.label.push_back(slates_[s].state_class[state]);
      states.state.push_back(to_index32(offsets_[s].state + state));
    }
  }
  states.partition = partitions_.of_labels(states.label);
  return states;
}

void SlateRefiner::start(UnorderedPlan& plan) {
  PairTable table(hash_bits_);
  for (const std::int32_t node : graph_.reached(0)) {
    const NodeStates& states = states_of(node);
    of_node_[node] = {states.partition, static_cast<std::int64_t>(colours_.size())};
    for (const std::int32_t config : partitions_.first_config(states.partition)) {
      bool fresh = false;
      colours_.push_back(table.number(graph_.node_class()[node], states.label[config], fresh));
      if (!fresh) continue;
      plan.node.push_back(to_index32(graph_slates_.first_node + graph_.node_class()[node]));
      plan.state.push_back(states.state[config]);
    }
  }
  reached_rows_ = table.size();
  for (const std::int32_t node : graph_.unreached(0).node) {
    plan.node.push_back(to_index32(graph_slates_.first_node + graph_.node_class()[node]));
    plan.state.push_back(-1);
  }
}

// The neighbourhoods of unreached nodes come first.
void SlateRefiner::start_neighbourhoods(int layer, std::size_t set, std::int64_t base,
                                        RowLists& lists) {
  first_neighbourhood_[set] = lists.size();
  single_[set].assign(rows(), -1);
  several_[set] = ColourTable(hash_bits_);
  neighbourhood_of_colour_[set].clear();
  const UnreachedNeighbourhoods& unreached = graph_.unreached_neighbourhoods(layer, set);
  const bool configs = graph_.shape().layers[layer].edge_kinds[set] == EdgeKind::configs;
  const std::int64_t copies = configs ? graph_slates_.configs : 1;
  for (std::int64_t g = 0; g < unreached.size(); ++g) {
    for (std::int64_t i = unreached.begin[g]; i < unreached.begin[g + 1]; ++i) {
      lists.row.insert(lists.row.end(), copies,
                       to_index32(base + reached_rows_ + unreached.source[i]));
    }
    lists.close();
  }
}

// Returns the neighbourhood of the sorted rows in `key_`; creates it if it is new.
std::int32_t SlateRefiner::neighbourhood_of_key(std::size_t set, std::int64_t base,
                                                RowLists& lists) {
  const auto make = [&] {
    for (const std::uint32_t row : key_) lists.row.push_back(to_index32(base + row));
    lists.close();
    return to_index32(lists.size() - 1);
  };
  if (key_.size() == 1) {
    std::int32_t& neighbourhood = single_[set][key_[0]];
    if (neighbourhood < 0) neighbourhood = make();
    return neighbourhood;
  }
  bool fresh = false;
  const std::int32_t colour = several_[set].colour(key_, fresh);
  if (fresh) neighbourhood_of_colour_[set].push_back(make());
  return neighbourhood_of_colour_[set][colour];
}

// The neighbourhood that all nodes share: the rows of the whole graph in each configuration.
void SlateRefiner::collect_whole_graph(int layer, std::size_t set, std::int64_t base,
                                       RowLists& lists, NodeNeighbourhoods& result) {
  result = {};
  if (graph_.reached(layer).empty()) {
    result.neighbourhood.push_back(to_index32(first_neighbourhood_[set]));
    return;
  }
  for (const std::int32_t node : graph_.reached(layer))
    result.partition = partitions_.refine(result.partition, of_node_[node].partition);
  for (const std::int32_t config : partitions_.first_config(result.partition)) {
    key_.clear();
    for (std::int32_t node = 0; node < graph_.nodes(); ++node)
      key_.push_back(static_cast<std::uint32_t>(row_of(node, config)));
    std::sort(key_.begin(), key_.end());
    result.neighbourhood.push_back(neighbourhood_of_key(set, base, lists));
  }
}

void SlateRefiner::collect_neighbourhoods(int layer, std::size_t set, std::int32_t node,
                                          std::int64_t base, RowLists& lists,
                                          NodeNeighbourhoods& result) {
  const std::int32_t unreached = graph_.unreached_neighbourhoods(layer, set).of_node[node];
  result.partition = 0;
  result.neighbourhood.clear();
  if (unreached >= 0) {
    result.neighbourhood.push_back(to_index32(first_neighbourhood_[set] + unreached));
    return;
  }
  const EdgeKind kind = graph_.shape().layers[layer].edge_kinds[set];
  if (kind == EdgeKind::configs) {
    key_.clear();
    for (std::int64_t config = 0; config < graph_slates_.configs; ++config) {
      key_.push_back(static_cast<std::uint32_t>(row_of(node, static_cast<std::int32_t>(config))));
    }
    std::sort(key_.begin(), key_.end());
    result.neighbourhood.push_back(neighbourhood_of_key(set, base, lists));
    return;
  }
  const auto sources = graph_.adjacency(kind).of(node);
  for (const std::int32_t source : sources) {
    if (graph_.unreached(layer).colour[source] < 0) {
      result.partition = partitions_.refine(result.partition, of_node_[source].partition);
    }
  }
  for (const std::int32_t config : partitions_.first_config(result.partition)) {
    key_.clear();
    for (const std::int32_t source : sources) {
      key_.push_back(static_cast<std::uint32_t>(row_of(source, config)));
    }
    if (key_.size() == 2) {
      if (key_[0] > key_[1]) std::swap(key_[0], key_[1]);
    } else if (key_.size() > 2) {
      std::sort(key_.begin(), key_.end());
    }
    result.neighbourhood.push_back(neighbourhood_of_key(set, base, lists));
  }
}

void SlateRefiner::advance(int layer, std::int64_t base, RawLayer& raw_layer) {
  layer_ = layer;
  const LayerShape& shape = graph_.shape().layers[layer];
  const std::size_t sets = shape.edge_kinds.size();
  first_neighbourhood_.resize(sets);
  single_.resize(sets);
  several_.resize(sets);
  neighbourhood_of_colour_.resize(sets);
  std::vector<NodeNeighbourhoods> around(sets);
  for (std::size_t set = 0; set < sets; ++set) {
    start_neighbourhoods(layer, set, base, raw_layer.neighbourhoods[set]);
    if (shape.edge_kinds[set] == EdgeKind::nodes)
      collect_whole_graph(layer, set, base, raw_layer.neighbourhoods[set], around[set]);
  }

  std::vector<NodeColours> next_of_node(graph_.nodes());
  std::vector<std::int32_t> next_colours;
  next_colours.reserve(2 * colours_.size());
  // A row is identified by its own row before the layer, a neighbourhood of each set, and the class
  // of the state that it joins.
  const std::size_t parts = sets + (shape.joins_states ? 1 : 0);
  std::vector<PairTable> tables(std::max<std::size_t>(parts, 1),
                                PairTable(hash_bits_, 2 * colours_.size()));
  for (const std::int32_t node : graph_.reached(layer + 1)) {
    const bool unreached = graph_.unreached(layer).colour[node] >= 0;
    std::int32_t partition = unreached ? 0 : of_node_[node].partition;
    for (std::size_t set = 0; set < sets; ++set) {
      if (shape.edge_kinds[set] != EdgeKind::nodes)
        collect_neighbourhoods(layer, set, node, base, raw_layer.neighbourhoods[set], around[set]);
      partition = partitions_.refine(partition, around[set].partition);
    }
    const NodeStates* const states = shape.joins_states ? &states_of(node) : nullptr;
    if (states) partition = partitions_.refine(partition, states->partition);
    const bool configurable = states && !states->label.empty();
    next_of_node[node] = {partition, static_cast<std::int64_t>(next_colours.size())};
    for (const std::int32_t config : partitions_.first_config(partition)) {
      const auto neighbourhood_at = [&](std::size_t set) {
        return around[set]
            .neighbourhood[partitions_.class_of_config(around[set].partition)[config]];
      };
      const std::int32_t own = row_of(node, config);
      bool fresh = false;
      std::int32_t row = parts ? own : tables[0].number(own, 0, fresh);
      for (std::size_t set = 0; set < sets; ++set) {
        row = tables[set].number(row, neighbourhood_at(set), fresh);
      }
      if (states)
        row = tables[sets].number(row, configurable ? states->label[config] + 1 : 0, fresh);
      next_colours.push_back(row);
      if (!fresh) continue;
      raw_layer.self.push_back(to_index32(base + own));
      if (states) raw_layer.state.push_back(configurable ? states->state[config] : -1);
      for (std::size_t set = 0; set < sets; ++set)
        raw_layer.neighbourhood[set].push_back(neighbourhood_at(set));
    }
  }
  add_unreached_rows(layer, base, raw_layer);
  reached_rows_ = tables.back().size();
  of_node_ = std::move(next_of_node);
  colours_ = std::move(next_colours);
  layer_ = layer + 1;
}

void SlateRefiner::add_unreached_rows(int layer, std::int64_t base, RawLayer& raw_layer) const {
  for (const std::int32_t node : graph_.unreached(layer + 1).node) {
    raw_layer.self.push_back(to_index32(base + row_of(node, 0)));
    if (graph_.shape().layers[layer].joins_states) raw_layer.state.push_back(-1);
    for (std::size_t set = 0; set < raw_layer.neighbourhood.size(); ++set) {
      const std::int32_t neighbourhood = graph_.unreached_neighbourhoods(layer, set).of_node[node];
      raw_layer.neighbourhood[set].push_back(to_index32(first_neighbourhood_[set] + neighbourhood));
    }
  }
}

// Nodes at which all configurations agree are common to them. The others are summed in cells: one
// for each class of each partition, so that a configuration uses one cell of every partition.
RawReadout SlateRefiner::read_out(std::int64_t base) const {
  RawReadout readout;
  std::vector<std::vector<std::int32_t>> nodes_of;  // of each partition met
  std::vector<std::int32_t> place, met;             // [partitions] in nodes_of; and back
  for (std::int32_t node = 0; node < graph_.nodes(); ++node) {
    const bool unreached = graph_.unreached(layer_).colour[node] >= 0;
    const std::int32_t partition = unreached ? 0 : of_node_[node].partition;
    if (partition == 0) {
      readout.common.row.push_back(to_index32(base + row_of(node, 0)));
      continue;
    }
    if (partition >= static_cast<std::int32_t>(place.size())) place.resize(partition + 1, -1);
    if (place[partition] < 0) {
      place[partition] = static_cast<std::int32_t>(met.size());
      met.push_back(partition);
      nodes_of.emplace_back();
    }
    nodes_of[place[partition]].push_back(node);
  }
  readout.common.close();
  std::vector<std::int64_t> first_cell;
  for (std::size_t p = 0; p < met.size(); ++p) {
    first_cell.push_back(readout.cells.size());
    for (std::int32_t c = 0; c < partitions_.classes(met[p]); ++c) {
      for (const std::int32_t node : nodes_of[p]) {
        readout.cells.row.push_back(to_index32(base + colours_[of_node_[node].begin + c]));
      }
      readout.cells.close();
    }
  }
  for (std::int64_t config = 0; config < graph_slates_.configs; ++config) {
    for (std::size_t p = 0; p < met.size(); ++p) {
      readout.cells_of_config.row.push_back(
          to_index32(first_cell[p] + partitions_.class_of_config(met[p])[config]));
    }
    readout.cells_of_config.close();
  }
  return readout;
}

}  // namespace tpudist
