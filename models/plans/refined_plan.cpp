#include "models/plans/build_plan.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "models/plans/csr.hpp"
#include "models/plans/slate_refiner.hpp"

namespace tpudist {
namespace {

// The slates to refine together: those of one graph, or each alone if a layer mixes the
// configurations of a slate.
std::vector<GraphSlates> collect_by_graph(std::span<const RefinedSlate> slates,
                                          std::span<const SlateOffsets> offsets) {
  std::vector<GraphSlates> graphs;
  const bool apart = slates[0].graph->shape().mixes_configs();
  for (std::size_t s = 0; s < slates.size(); ++s) {
    auto known = std::find_if(graphs.begin(), graphs.end(),
                              [&](const GraphSlates& g) { return g.graph == slates[s].graph; });
    if (known == graphs.end() || apart) {
      known = graphs.end();
      known = graphs.insert(known, GraphSlates{slates[s].graph, {}, 0, offsets[s].node});
    }
    known->slates.push_back(s);
    known->configs += slates[s].configs;
  }
  return graphs;
}

std::vector<SlateOffsets> number_through(std::span<const RefinedSlate> slates, Plan& plan) {
  std::vector<SlateOffsets> offsets;
  for (const RefinedSlate& slate : slates) {
    const std::size_t width = std::max<std::size_t>(slate.graph->config_nodes().size(), 1);
    if (slate.configs <= 0 || slate.states.size() != slate.configs * width ||
        static_cast<std::int64_t>(slate.state_class.size()) != slate.state_rows) {
      throw Error(ErrorKind::failed,
                  "cannot plan a slate: states or their classes have the wrong length");
    }
    const std::int64_t begin = slate.input_begin < 0 ? plan.nodes : slate.input_begin;
    offsets.push_back({begin, plan.states, plan.configs});
    plan.nodes = std::max(plan.nodes, begin + std::max(slate.graph->classes(), slate.input_rows));
    plan.states += slate.state_rows;
    plan.configs += slate.configs;
  }
  return offsets;
}

UnorderedPlan refine(std::span<const GraphSlates> graphs, std::span<const RefinedSlate> slates,
                     std::span<const SlateOffsets> offsets, int hash_bits) {
  UnorderedPlan raw;
  std::vector<SlateRefiner> refiners;
  refiners.reserve(graphs.size());
  for (const GraphSlates& graph : graphs) {
    refiners.emplace_back(graph, slates, offsets, hash_bits).start(raw);
  }
  const PlanShape& shape = graphs[0].graph->shape();
  for (std::size_t layer = 0; layer < shape.layers.size(); ++layer) {
    RawLayer& raw_layer = raw.layers.emplace_back();
    raw_layer.neighbourhood.resize(shape.layers[layer].edge_kinds.size());
    raw_layer.neighbourhoods.resize(shape.layers[layer].edge_kinds.size());
    std::int64_t base = 0;
    for (SlateRefiner& refiner : refiners) {
      const std::int64_t before = refiner.rows();
      refiner.advance(static_cast<int>(layer), base, raw_layer);
      base += before;
    }
  }
  std::int64_t base = 0;
  for (const SlateRefiner& refiner : refiners) {
    raw.readouts.push_back(refiner.read_out(base));
    base += refiner.rows();
  }
  return raw;
}

// Why a row or a neighbourhood is needed in the backward pass: as the own state of a needed row, or
// for another reason (a needed row or the readout adds it up).
enum NeededAs : char { kNotNeeded, kNeeded, kNeededAsSelf };

// A new order of rows or neighbourhoods: own-state rows of needed rows, then other needed ones,
// then the rest. Each part keeps the order in which it was found.
struct Order {
  std::vector<std::int32_t> place;  // new number of each
  std::vector<std::int32_t> found;  // the inverse
  std::int64_t self_rows = 0, needed = 0;
};

Order order_by(const std::vector<NeededAs>& need) {
  Order order;
  const auto size = static_cast<std::int64_t>(need.size());
  std::int32_t count[3] = {};
  for (const NeededAs n : need) ++count[n];
  order.self_rows = count[kNeededAsSelf];
  order.needed = order.self_rows + count[kNeeded];
  std::int32_t next[3] = {to_index32(order.needed), count[kNeededAsSelf], 0};
  order.place.resize(size);
  order.found.resize(size);
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int32_t place = next[need[i]]++;
    order.place[i] = place;
    order.found[place] = static_cast<std::int32_t>(i);
  }
  return order;
}

// The orders of the rows before each layer and after the last one, and of each layer's
// neighbourhoods.
struct Orders {
  std::vector<Order> rows;                         // [depth + 1]
  std::vector<std::vector<Order>> neighbourhoods;  // [depth][edge sets]
};

// Finds, from the last layer down, what influences the differences between the scores of a slate.
Orders order_rows(const UnorderedPlan& raw) {
  Orders orders;
  const std::size_t depth = raw.layers.size();
  orders.rows.resize(depth + 1);
  orders.neighbourhoods.resize(depth);
  const auto rows_at = [&](std::size_t layer) {
    return layer == 0 ? raw.node.size() : raw.layers[layer - 1].self.size();
  };
  std::vector<NeededAs> need(rows_at(depth), kNotNeeded);
  for (const RawReadout& readout : raw.readouts) {
    for (const std::int32_t row : readout.cells.row) need[row] = kNeeded;
  }
  for (std::size_t layer = depth; layer-- > 0;) {
    const RawLayer& raw_layer = raw.layers[layer];
    std::vector<NeededAs> below(rows_at(layer), kNotNeeded);
    for (std::size_t set = 0; set < raw_layer.neighbourhood.size(); ++set) {
      const RowLists& lists = raw_layer.neighbourhoods[set];
      std::vector<NeededAs> around(lists.size(), kNotNeeded);
      for (std::size_t row = 0; row < need.size(); ++row) {
        if (need[row]) around[raw_layer.neighbourhood[set][row]] = kNeeded;
      }
      for (std::int64_t list = 0; list < lists.size(); ++list) {
        if (!around[list]) continue;
        for (const std::int32_t row : lists.of(list)) below[row] = kNeeded;
      }
      orders.neighbourhoods[layer].push_back(order_by(around));
    }
    for (std::size_t row = 0; row < need.size(); ++row) {
      if (need[row]) below[raw_layer.self[row]] = kNeededAsSelf;
    }
    orders.rows[layer + 1] = order_by(need);
    need = std::move(below);
  }
  orders.rows[0] = order_by(need);
  return orders;
}

// Returns values in the new order of their rows.
std::vector<std::int32_t> reorder(std::span<const std::int32_t> values, const Order& rows) {
  std::vector<std::int32_t> result(values.size());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = values[rows.found[i]];
  return result;
}

// One row of a matrix: columns in any order and with repetitions, each of which counts `weight`.
struct WeightedList {
  std::span<const std::int32_t> columns;
  double weight = 1;
};

// Sorts the columns of rows and merges equal ones. Not thread-safe.
class ColumnMerger {
 public:
  explicit ColumnMerger(std::size_t width) : count_(width), met_(width / 64 + 1) {}

  // Sorts the columns of a row, which are from `low` to `high`, and merges equal ones. Sets how
  // often each occurred, and returns how many differ. Columns that stand close are counted, which
  // takes one pass over them and one over a bit for each column between `low` and `high`.
  std::size_t merge(std::span<std::int32_t> columns, std::int32_t low, std::int32_t high,
                    float* count) {
    const auto first = static_cast<std::size_t>(low) / 64,
               last = static_cast<std::size_t>(high) / 64;
    std::size_t size = 0;
    if (columns.size() > 24 && last - first < 2 * columns.size()) {
      for (const std::int32_t column : columns) {
        ++count_[column];
        met_[column / 64] |= 1ull << column % 64;
      }
      for (std::size_t word = first; word <= last; ++word) {
        for (std::uint64_t met = std::exchange(met_[word], 0); met != 0; met &= met - 1) {
          const std::size_t column = 64 * word + static_cast<std::size_t>(std::countr_zero(met));
          columns[size] = static_cast<std::int32_t>(column);
          count[size++] = static_cast<float>(std::exchange(count_[column], 0));
        }
      }
      return size;
    }
    sort_rows(columns);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (size > 0 && columns[size - 1] == columns[i]) {
        ++count[size - 1];
        continue;
      }
      columns[size] = columns[i];
      count[size++] = 1;
    }
    return size;
  }

 private:
  // Of each column; all 0 between calls.
  std::vector<std::int32_t> count_;
  std::vector<std::uint64_t> met_;
};

// Makes the matrix of these rows, with renumbered columns, and its transpose. Columns are mostly in
// order when they are renumbered, because renumbering keeps the order within each part of `Order`.
SparseMatrix make_matrix(std::span<const WeightedList> lists, const Order& columns) {
  SparseMatrix matrix;
  Csr &forward = matrix.forward, &transposed = matrix.transposed;
  const std::size_t width = columns.place.size();
  std::size_t most = 0;
  for (const WeightedList& list : lists) most += list.columns.size();
  to_index32(static_cast<std::int64_t>(most));
  forward.begin.resize(lists.size() + 1);
  forward.source.resize(most);
  // Most entries have one weight, which need not be written again.
  const auto usual = static_cast<float>(lists.empty() ? 1 : lists[0].weight);
  forward.weight.assign(most, usual);
  transposed.begin.assign(width + 1, 0);
  ColumnMerger merger(width);
  std::int32_t entries = 0;
  for (std::size_t row = 0; row < lists.size(); ++row) {
    const WeightedList& list = lists[row];
    std::int32_t* const source = forward.source.data() + entries;
    float* const weight = forward.weight.data() + entries;
    std::size_t size = list.columns.size();
    bool ascending = true;
    std::int32_t previous = -1, low = std::numeric_limits<std::int32_t>::max(), high = 0;
    for (std::size_t i = 0; i < size; ++i) {
      source[i] = columns.place[list.columns[i]];
      ascending &= source[i] > previous;
      previous = source[i];
      low = std::min(low, previous);
      high = std::max(high, previous);
    }
    if (ascending) {
      const auto own = static_cast<float>(list.weight);
      if (own != usual) std::fill_n(weight, size, own);
    } else {
      size = merger.merge({source, size}, low, high, weight);
      for (std::size_t i = 0; i < size; ++i)
        weight[i] = static_cast<float>(weight[i] * list.weight);
    }
    for (std::size_t i = 0; i < size; ++i) ++transposed.begin[source[i] + 1];
    entries += static_cast<std::int32_t>(size);
    forward.begin[row + 1] = entries;
  }
  forward.source.resize(entries);
  forward.weight.resize(entries);
  transposed.source.resize(starts_of_rows(transposed.begin));
  transposed.weight.assign(entries, usual);
  for (std::size_t row = 0; row < lists.size(); ++row) {
    for (std::int32_t e = forward.begin[row]; e < forward.begin[row + 1]; ++e) {
      const std::int32_t at = transposed.begin[forward.source[e] + 1]++;
      transposed.source[at] = static_cast<std::int32_t>(row);
      if (forward.weight[e] != usual) transposed.weight[at] = forward.weight[e];
    }
  }
  return matrix;
}

GatherIndex make_gather(std::span<const std::int32_t> index, const Order& rows,
                        const Order& targets) {
  GatherIndex gather;
  Csr& transposed = gather.transposed;
  gather.index.resize(index.size());
  transposed.begin.assign(targets.place.size() + 1, 0);
  for (std::size_t row = 0; row < index.size(); ++row) {
    const std::int32_t place = targets.place[index[rows.found[row]]];
    gather.index[row] = place;
    ++transposed.begin[place + 1];
  }
  transposed.source.resize(starts_of_rows(transposed.begin));
  for (std::size_t row = 0; row < index.size(); ++row)
    transposed.source[transposed.begin[gather.index[row] + 1]++] = static_cast<std::int32_t>(row);
  return gather;
}

EdgeSet make_edge_set(const RowLists& raw, const Order& neighbourhoods, const Order& rows_in,
                      bool mean) {
  std::vector<WeightedList> lists;
  lists.reserve(neighbourhoods.found.size());
  for (const std::int32_t found : neighbourhoods.found) {
    const auto list = raw.of(found);
    const bool divided = mean && !list.empty();
    lists.push_back({list, divided ? 1.0 / static_cast<double>(list.size()) : 1.0});
  }
  return {make_matrix(lists, rows_in), {}};
}

std::shared_ptr<const PlanLayer> make_layer(const RawLayer& raw, const LayerShape& shape,
                                            const Order& rows_in, const Order& rows_out,
                                            std::span<const Order> neighbourhoods) {
  auto layer = std::make_shared<PlanLayer>();
  layer->rows_in = static_cast<std::int64_t>(rows_in.place.size());
  layer->rows_out = static_cast<std::int64_t>(rows_out.place.size());
  layer->self = make_gather(raw.self, rows_out, rows_in);
  if (shape.joins_states) layer->state = reorder(raw.state, rows_out);
  for (std::size_t set = 0; set < raw.neighbourhood.size(); ++set) {
    const bool mean = shape.aggregation == Aggregation::mean && along_graph(shape.edge_kinds[set]);
    EdgeSet& edges = layer->edges.emplace_back(
        make_edge_set(raw.neighbourhoods[set], neighbourhoods[set], rows_in, mean));
    edges.neighbourhood = make_gather(raw.neighbourhood[set], rows_out, neighbourhoods[set]);
  }
  return layer;
}

// Joins the readouts of all graphs, in the order of the slates.
Readout make_readout(const UnorderedPlan& raw, std::span<const GraphSlates> graphs,
                     std::span<const RefinedSlate> slates, const Order& rows, bool mean) {
  Readout readout;
  struct Place {
    std::size_t graph;
    std::int64_t config, cell;
  };
  std::vector<Place> places(slates.size());
  std::vector<WeightedList> cells, common;
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    std::int64_t config = 0;
    for (const std::size_t s : graphs[g].slates) {
      places[s] = {g, config, static_cast<std::int64_t>(cells.size())};
      config += slates[s].configs;
    }
    const double weight = mean ? 1.0 / static_cast<double>(graphs[g].graph->nodes()) : 1.0;
    const RowLists& own = raw.readouts[g].cells;
    for (std::int64_t c = 0; c < own.size(); ++c) cells.push_back({own.of(c), weight});
  }
  readout.scores.forward.begin.push_back(0);
  for (std::size_t s = 0; s < slates.size(); ++s) {
    const RawReadout& own = raw.readouts[places[s].graph];
    const auto nodes = static_cast<double>(slates[s].graph->nodes());
    for (std::int64_t k = 0; k < slates[s].configs; ++k) {
      for (const std::int32_t c : own.cells_of_config.of(places[s].config + k)) {
        readout.scores.forward.source.push_back(to_index32(places[s].cell + c));
      }
      readout.scores.forward.begin.push_back(to_index32(readout.scores.forward.entries()));
      readout.slate_of_config.push_back(static_cast<std::int32_t>(s));
    }
    common.push_back({own.common.of(0), mean ? 1.0 / nodes : 1.0});
  }
  readout.cells = make_matrix(cells, rows);
  readout.scores.transposed =
      transpose(readout.scores.forward, static_cast<std::int64_t>(cells.size()));
  readout.common = make_matrix(common, rows);
  return readout;
}

}  // namespace

Plan build_refined_plan(std::span<const RefinedSlate> slates, int hash_bits) {
  Plan plan;
  const std::vector<SlateOffsets> offsets = number_through(slates, plan);
  const std::vector<GraphSlates> graphs = collect_by_graph(slates, offsets);
  const UnorderedPlan raw = refine(graphs, slates, offsets, hash_bits);
  const Orders orders = order_rows(raw);
  const PlanShape& shape = slates[0].graph->shape();
  plan.needed_first_rows = orders.rows[0].needed;
  plan.node = reorder(raw.node, orders.rows[0]);
  plan.state = reorder(raw.state, orders.rows[0]);
  for (std::size_t s = 0; s < slates.size() && slates[s].graph->config_nodes().empty(); ++s) {
    for (const std::int32_t state : slates[s].states)
      plan.state_of_config.push_back(to_index32(offsets[s].state + state));
  }
  plan.rows_of_node = transpose_index(plan.node, plan.nodes);
  plan.rows_of_state = transpose_index(plan.state, plan.states);
  for (std::size_t i = 0; i < raw.layers.size(); ++i) {
    plan.layers.push_back(make_layer(raw.layers[i], shape.layers[i], orders.rows[i],
                                     orders.rows[i + 1], orders.neighbourhoods[i]));
    NeededCounts& needed = plan.needed_counts.emplace_back();
    needed.rows = orders.rows[i + 1].needed;
    needed.self_rows = orders.rows[i].self_rows;
    for (const Order& order : orders.neighbourhoods[i]) {
      needed.neighbourhoods.push_back(order.needed);
    }
  }
  plan.readout = make_readout(raw, graphs, slates, orders.rows.back(), shape.mean_readout);
  return plan;
}

}  // namespace tpudist
