#include "models/plans/slate_refiner.hpp"

#include <algorithm>

#include "core/hash.hpp"
#include "models/plans/csr.hpp"

namespace tpudist {
namespace {

// Lists of neighbours are looked up from this length on; reading shorter ones is as quick.
constexpr std::size_t kLongList = 32;

std::uint64_t hash_of_row(std::int32_t row) {
  return mix_hash(static_cast<std::uint64_t>(row) + 0x9e3779b97f4a7c15ull);
}

// The sum of the rows' hashes, which does not depend on their order.
std::uint64_t hash_of_rows(std::span<const std::int32_t> rows) {
  std::uint64_t hash = 0;
  for (const std::int32_t row : rows) hash += hash_of_row(row);
  return hash;
}

// Appends first + values[i] for each i of `which`.
void append_of(std::span<const std::int32_t> which, std::span<const std::int32_t> values,
               std::int32_t first, std::vector<std::int32_t>& list) {
  list.resize(list.size() + which.size());
  std::int32_t* at = list.data() + list.size() - which.size();
  for (const std::int32_t i : which) *at++ = first + values[i];
}

}  // namespace

SlateRefiner::SlateRefiner(const GraphSlates& graph_slates, std::span<const RefinedSlate> slates,
                           std::span<const SlateOffsets> offsets, int hash_bits)
    : graph_(*graph_slates.graph),
      graph_slates_(graph_slates),
      slates_(slates),
      offsets_(offsets),
      hash_bits_(hash_bits),
      hash_mask_(hash_bits >= 64 ? ~0ull : (1ull << hash_bits) - 1),
      partitions_(graph_slates.configs),
      of_node_(graph_.nodes()),
      next_of_node_(graph_.nodes()) {
  label_configs();
}

// Lists, for every configurable node and configuration, the class of the state and its row in the
// plan.
void SlateRefiner::label_configs() {
  const Array<std::int32_t>& config_nodes = graph_.config_nodes();
  const std::size_t width = std::max<std::size_t>(config_nodes.size(), 1);
  const auto configs = static_cast<std::size_t>(graph_slates_.configs);
  label_.resize(width * configs);
  state_.resize(width * configs);
  states_.reserve(width + 1);
  if (!config_nodes.empty()) {
    states_.emplace_back();
    node_states_.assign(graph_.nodes(), 0);
  }
  for (std::size_t j = 0; j < width; ++j) {
    if (!config_nodes.empty())
      node_states_[config_nodes[j]] = static_cast<std::int32_t>(states_.size());
    std::size_t at = j * configs;
    states_.push_back({0, label_.data() + at, state_.data() + at});
    for (const std::size_t s : graph_slates_.slates) {
      const RefinedSlate& slate = slates_[s];
      for (std::int64_t k = 0; k < slate.configs; ++k, ++at) {
        const std::int32_t state = slate.states[k * width + j];
        label_[at] = slate.state_class[state];
        state_[at] = to_index32(offsets_[s].state + state);
      }
    }
    states_.back().partition = partitions_.of_labels({states_.back().label, configs});
  }
}

void SlateRefiner::start(UnorderedPlan& plan) {
  PairTable table(hash_bits_);
  for (const std::int32_t node : graph_.reached(0)) {
    const NodeStates& states = states_of(node);
    of_node_.set(node, states.partition, to_index32(colours_.size()));
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
  number_unreached_rows();
}

// The rows of unreached nodes follow those of reached ones.
void SlateRefiner::number_unreached_rows() {
  const UnreachedLayer& unreached = graph_.unreached(layer_);
  const std::int32_t begin = to_index32(colours_.size());
  for (std::int64_t row = reached_rows_; row < rows(); ++row)
    colours_.push_back(static_cast<std::int32_t>(row));
  if (unreached.node.empty()) return;
  std::int32_t* const begins = of_node_.begin.data();
  for (std::int64_t node = 0; node < graph_.nodes(); ++node) {
    const std::int32_t colour = unreached.colour[node];
    begins[node] = colour >= 0 ? begin + colour : begins[node];
  }
}

// The neighbourhoods of unreached nodes come first.
void SlateRefiner::start_neighbourhoods(int layer, std::size_t set, std::int64_t base,
                                        RowLists& lists) {
  first_neighbourhood_[set] = lists.size();
  single_[set].assign(rows(), -1);
  several_[set].clear();
  known_lists_[set].clear();
  const UnreachedNeighbourhoods& unreached = graph_.unreached_neighbourhoods(layer, set);
  const bool configs = graph_.shape().layers[layer].edge_kinds[set] == EdgeKind::configs;
  const std::int64_t copies = configs ? graph_slates_.configs : 1;
  const std::int32_t first = to_index32(base + reached_rows_);
  const auto begin = static_cast<std::int64_t>(lists.row.size());
  lists.row.resize(lists.row.size() + unreached.source.size() * copies);
  std::int32_t* row = lists.row.data() + begin;
  for (const std::int32_t source : unreached.source) row = std::fill_n(row, copies, first + source);
  for (std::int64_t g = 1; g <= unreached.size(); ++g)
    lists.begin.push_back(begin + copies * unreached.begin[g]);
}

// Returns the neighbourhood of a single row; creates it if it is new.
std::int32_t SlateRefiner::neighbourhood_of_row(std::size_t set, std::int32_t row,
                                                std::int64_t base, RowLists& lists) {
  std::int32_t& neighbourhood = single_[set][row];
  if (neighbourhood < 0) {
    neighbourhood = to_index32(lists.size());
    lists.row.push_back(to_index32(base + row));
    lists.close();
  }
  return neighbourhood;
}

std::int32_t SlateRefiner::neighbourhood_of_key(std::size_t set, std::uint64_t hash,
                                                std::int64_t base, RowLists& lists) {
  if (key_.size() == 1) return neighbourhood_of_row(set, key_[0], base, lists);
  hash = mix_hash(hash) & hash_mask_;  // a sum of equal hashes has few bits
  std::int32_t list = several_[set].find(
      hash, [&](std::int32_t candidate) { return is_key(lists.of(candidate), base); });
  if (list >= 0) return list;
  list = to_index32(lists.size());
  several_[set].insert(hash, list);
  const auto first = to_index32(base);
  const std::size_t size = lists.row.size();
  lists.row.resize(size + key_.size());
  std::ranges::transform(key_, lists.row.begin() + static_cast<std::ptrdiff_t>(size),
                         [first](std::int32_t row) { return first + row; });
  lists.close();
  return list;
}

// Whether a list has the rows of `key_`, in any order.
bool SlateRefiner::is_key(std::span<const std::int32_t> list, std::int64_t base) {
  if (list.size() != key_.size()) return false;
  const auto first = static_cast<std::int32_t>(base);
  if (std::ranges::equal(key_, list, {}, [first](std::int32_t row) { return first + row; }))
    return true;
  for (const std::int32_t row : key_) ++count_[row];
  bool equal = true;
  for (const std::int32_t row : list) equal = --count_[row - first] >= 0 && equal;
  for (const std::int32_t row : key_) count_[row] = 0;
  for (const std::int32_t row : list) count_[row - first] = 0;
  return equal;
}

// Where the rows of a node begin in row_of_config_ and hash_of_config_, which are filled at the
// first use.
std::size_t SlateRefiner::columns_of(std::int32_t node) {
  const auto configs = static_cast<std::size_t>(graph_slates_.configs);
  std::int32_t& at = columns_[node];
  if (at < 0) {
    at = to_index32(static_cast<std::int64_t>(row_of_config_.size() / configs));
    const NodeRows rows = rows_of(node);
    for (std::int64_t config = 0; config < graph_slates_.configs; ++config) {
      row_of_config_.push_back(rows(config));
      hash_of_config_.push_back(hash_of_row(rows(config)));
    }
  }
  return static_cast<std::size_t>(at) * configs;
}

// The neighbourhood that all nodes share: the rows of the whole graph in each configuration.
void SlateRefiner::collect_whole_graph(int layer, std::size_t set, std::int64_t base,
                                       RowLists& lists, NodeNeighbourhoods& result) {
  if (graph_.reached(layer).empty()) {
    result.neighbourhood.push_back(to_index32(first_neighbourhood_[set]));
    return;
  }
  for (const std::int32_t node : graph_.reached(layer))
    result.partition = partitions_.refine(result.partition, of_node_.partition[node]);
  for (const std::int32_t config : partitions_.first_config(result.partition)) {
    key_.clear();
    for (std::int32_t node = 0; node < graph_.nodes(); ++node)
      key_.push_back(rows_of(node)(config));
    result.neighbourhood.push_back(neighbourhood_of_key(set, hash_of_rows(key_), base, lists));
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
    for (std::int64_t config = 0; config < graph_slates_.configs; ++config)
      key_.push_back(rows_of(node)(config));
    result.neighbourhood.push_back(neighbourhood_of_key(set, hash_of_rows(key_), base, lists));
    return;
  }
  const auto sources = graph_.adjacency(kind).of(node);
  if (sources.size() == 1) {
    result.partition = of_node_.partition[sources[0]];
    const std::int32_t* const row = rows_of(sources[0]).of_class;
    for (std::int32_t c = 0; c < partitions_.classes(result.partition); ++c)
      result.neighbourhood.push_back(neighbourhood_of_row(set, row[c], base, lists));
    return;
  }
  // Nodes often have equal lists along config edges, which may have thousands of neighbours.
  KnownList* known = nullptr;
  const bool is_long = sources.size() >= kLongList;
  if (is_long) {
    const auto [at, fresh] = known_lists_[set].try_emplace(hash64(std::as_bytes(sources)));
    if (fresh) {
      known = &at->second;
      known->node = node;
    } else if (std::ranges::equal(graph_.adjacency(kind).of(at->second.node), sources)) {
      result = at->second.around;
      return;
    }
  }
  for (const std::int32_t source : sources)
    result.partition = partitions_.refine(result.partition, of_node_.partition[source]);
  key_.resize(sources.size());
  // A few classes are added up one by one.
  if (is_long && 4 * partitions_.classes(result.partition) >= graph_slates_.configs) {
    collect_long_list(set, sources, base, lists, result);
  } else {
    sources_.clear();
    for (const std::int32_t source : sources) sources_.push_back(rows_of(source));
    for (const std::int32_t config : partitions_.first_config(result.partition)) {
      for (std::size_t i = 0; i < key_.size(); ++i) key_[i] = sources_[i](config);
      if (!is_long) sort_rows(std::span(key_));
      result.neighbourhood.push_back(neighbourhood_of_key(set, hash_of_rows(key_), base, lists));
    }
  }
  if (known) known->around = result;
}

// Adds up the hashes of all configurations source by source.
void SlateRefiner::collect_long_list(std::size_t set, std::span<const std::int32_t> sources,
                                     std::int64_t base, RowLists& lists,
                                     NodeNeighbourhoods& result) {
  source_columns_.clear();
  for (const std::int32_t source : sources) source_columns_.push_back(columns_of(source));
  sums_.assign(static_cast<std::size_t>(graph_slates_.configs), 0);
  for (const std::size_t column : source_columns_) {
    const std::uint64_t* const hash = hash_of_config_.data() + column;
    for (std::size_t config = 0; config < sums_.size(); ++config) sums_[config] += hash[config];
  }
  for (const std::int32_t config : partitions_.first_config(result.partition)) {
    const std::int32_t* const row = row_of_config_.data() + config;
    for (std::size_t i = 0; i < key_.size(); ++i) key_[i] = row[source_columns_[i]];
    result.neighbourhood.push_back(neighbourhood_of_key(set, sums_[config], base, lists));
  }
}

void SlateRefiner::advance(int layer, std::int64_t base, RawLayer& raw_layer) {
  layer_ = layer;
  const LayerShape& shape = graph_.shape().layers[layer];
  const std::size_t sets = shape.edge_kinds.size();
  first_neighbourhood_.resize(sets);
  single_.resize(sets);
  several_.resize(sets);
  known_lists_.resize(sets);
  count_.resize(rows());
  columns_.assign(graph_.nodes(), -1);
  row_of_config_.clear();
  hash_of_config_.clear();
  std::vector<NodeNeighbourhoods> around(sets);
  for (std::size_t set = 0; set < sets; ++set) {
    start_neighbourhoods(layer, set, base, raw_layer.neighbourhoods[set]);
    if (shape.edge_kinds[set] == EdgeKind::nodes)
      collect_whole_graph(layer, set, base, raw_layer.neighbourhoods[set], around[set]);
  }

  next_colours_.clear();
  raw_layer.self.reserve(raw_layer.self.size() + rows());
  for (auto& neighbourhood : raw_layer.neighbourhood)
    neighbourhood.reserve(neighbourhood.size() + rows());
  // A row is identified by its own row before the layer, a neighbourhood of each set, and the class
  // of the state that it joins.
  const std::size_t parts = sets + (shape.joins_states ? 1 : 0);
  row_tables_.resize(std::max<std::size_t>(parts, 1), PairTable(hash_bits_));
  for (PairTable& table : row_tables_) table.clear();
  for (const std::int32_t node : graph_.reached(layer + 1)) {
    std::int32_t partition = of_node_.partition[node];
    for (std::size_t set = 0; set < sets; ++set) {
      if (shape.edge_kinds[set] != EdgeKind::nodes)
        collect_neighbourhoods(layer, set, node, base, raw_layer.neighbourhoods[set], around[set]);
      partition = partitions_.refine(partition, around[set].partition);
    }
    const NodeStates* const states = shape.joins_states ? &states_of(node) : nullptr;
    if (states) partition = partitions_.refine(partition, states->partition);
    const bool configurable = states && states->label;
    next_of_node_.set(node, partition, to_index32(next_colours_.size()));
    const NodeRows own_rows = rows_of(node);
    around_.clear();
    for (const NodeNeighbourhoods& its : around)
      around_.push_back(
          {its.neighbourhood.data(), partitions_.class_of_config(its.partition).data()});
    for (const std::int32_t config : partitions_.first_config(partition)) {
      const std::int32_t own = own_rows(config);
      bool fresh = false;
      std::int32_t row = parts ? own : row_tables_[0].number(own, 0, fresh);
      for (std::size_t set = 0; set < sets; ++set)
        row = row_tables_[set].number(row, around_[set](config), fresh);
      if (states)
        row = row_tables_[sets].number(row, configurable ? states->label[config] + 1 : 0, fresh);
      next_colours_.push_back(row);
      if (!fresh) continue;
      raw_layer.self.push_back(to_index32(base + own));
      if (states) raw_layer.state.push_back(configurable ? states->state[config] : -1);
      for (std::size_t set = 0; set < sets; ++set)
        raw_layer.neighbourhood[set].push_back(around_[set](config));
    }
  }
  add_unreached_rows(layer, base, raw_layer);
  reached_rows_ = row_tables_.back().size();
  std::swap(of_node_, next_of_node_);
  colours_.swap(next_colours_);
  layer_ = layer + 1;
  number_unreached_rows();
}

void SlateRefiner::add_unreached_rows(int layer, std::int64_t base, RawLayer& raw_layer) const {
  const std::span<const std::int32_t> nodes = graph_.unreached(layer + 1).node;
  append_of(nodes, graph_.unreached(layer).colour, to_index32(base + reached_rows_),
            raw_layer.self);
  if (graph_.shape().layers[layer].joins_states)
    raw_layer.state.resize(raw_layer.state.size() + nodes.size(), -1);
  for (std::size_t set = 0; set < raw_layer.neighbourhood.size(); ++set)
    append_of(nodes, graph_.unreached_neighbourhoods(layer, set).of_node,
              to_index32(first_neighbourhood_[set]), raw_layer.neighbourhood[set]);
}

// Nodes at which all configurations agree are common to them. The others are summed in cells: one
// for each class of each partition, so that a configuration uses one cell of every partition.
RawReadout SlateRefiner::read_out(std::int64_t base) const {
  RawReadout readout;
  std::vector<std::vector<std::int32_t>> nodes_of;  // of each partition met
  std::vector<std::int32_t> place, met;             // [partitions] in nodes_of; and back
  for (std::int32_t node = 0; node < graph_.nodes(); ++node) {
    const std::int32_t partition = of_node_.partition[node];
    if (partition == 0) {
      readout.common.row.push_back(to_index32(base + rows_of(node)(0)));
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
        readout.cells.row.push_back(to_index32(base + colours_[of_node_.begin[node] + c]));
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

// A cell sums up a few reached nodes that follow each other, which mostly stand close in the graph,
// so that few classes of configurations differ there.
RawReadout SlateRefiner::read_out_fixed() {
  RawReadout readout;
  const std::span<const std::int32_t> reached = graph_.reached(layer_);
  for (const std::int32_t colour : graph_.unreached(layer_).colour) {
    if (colour >= 0) readout.common.row.push_back(to_index32(reached_rows_ + colour));
  }
  readout.common.close();
  std::vector<std::int64_t> first_cell;
  std::vector<std::int32_t> partitions;
  for (std::size_t at = 0; at < reached.size(); at += kCellNodes) {
    const auto nodes = reached.subspan(at, std::min(kCellNodes, reached.size() - at));
    std::int32_t partition = 0;
    for (const std::int32_t node : nodes)
      partition = partitions_.refine(partition, of_node_.partition[node]);
    first_cell.push_back(readout.cells.size());
    partitions.push_back(partition);
    for (const std::int32_t config : partitions_.first_config(partition)) {
      for (const std::int32_t node : nodes) readout.cells.row.push_back(rows_of(node)(config));
      readout.cells.close();
    }
  }
  for (std::int64_t config = 0; config < graph_slates_.configs; ++config) {
    for (std::size_t i = 0; i < partitions.size(); ++i) {
      readout.cells_of_config.row.push_back(
          to_index32(first_cell[i] + partitions_.class_of_config(partitions[i])[config]));
    }
    readout.cells_of_config.close();
  }
  return readout;
}

}  // namespace tpudist
