#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "models/plans/build_plan.hpp"
#include "models/plans/colour_table.hpp"
#include "models/plans/refined_graph.hpp"

namespace tpudist {

// Lists of rows, one after another, each in any order and with repetitions.
struct RowLists {
  std::vector<std::int64_t> begin{0};
  std::vector<std::int32_t> row;
  std::int64_t size() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::span<const std::int32_t> of(std::int64_t list) const {
    return std::span(row).subspan(begin[list], begin[list + 1] - begin[list]);
  }
  void close() { begin.push_back(static_cast<std::int64_t>(row.size())); }
};

// Sorts integers; faster than std::sort where they are few and nearly in order.
template <typename T>
void sort_rows(std::span<T> rows) {
  if (rows.size() > 24) {
    std::ranges::sort(rows);
    return;
  }
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const T row = rows[i];
    std::size_t at = i;
    for (; at > 0 && rows[at - 1] > row; --at) rows[at] = rows[at - 1];
    rows[at] = row;
  }
}

// A layer whose rows and neighbourhoods are in the order in which refinement found them.
struct RawLayer {
  std::vector<std::int32_t> self;   // [rows] each row's own row before the layer
  std::vector<std::int32_t> state;  // [rows], -1: not configurable; empty: the layer joins no
                                    // states
  std::vector<std::vector<std::int32_t>> neighbourhood;  // [edge sets][rows]
  std::vector<RowLists> neighbourhoods;                  // [edge sets] rows before the layer
};

// The readout of the slates of one graph. Rows are numbered in the order of refinement.
struct RawReadout {
  RowLists cells;            // the rows that each cell sums
  RowLists cells_of_config;  // the cells that each configuration's score sums
  RowLists common;           // one list: the rows that all configurations share
};

// A plan whose rows are in the order in which refinement found them.
struct UnorderedPlan {
  std::vector<std::int32_t> node, state;  // of the rows before the first layer
  std::vector<RawLayer> layers;
  std::vector<RawReadout> readouts;  // [graphs]
};

// Offsets of a slate's input rows, states and configurations in the plan's numbering.
struct SlateOffsets {
  std::int64_t node, state, config;
};

// The slates of one graph, which are refined together. Their configurations are numbered
// consecutively over all slates.
struct GraphSlates {
  const RefinedGraph* graph;
  std::vector<std::size_t> slates;
  std::int64_t configs = 0;
  std::int64_t first_node = 0;  // in the plan's numbering
};

// Refines the slates of one graph layer by layer. Not thread-safe.
class SlateRefiner {
 public:
  // Everything is borrowed and must outlive the refiner.
  SlateRefiner(const GraphSlates& graph_slates, std::span<const RefinedSlate> slates,
               std::span<const SlateOffsets> offsets, int hash_bits);

  // Colours the first rows by (class of the node, class of the state) and appends their nodes and
  // states to the plan.
  void start(UnorderedPlan& plan);
  // Colours the rows after layer `layer` and appends them to `raw_layer`. `base`: index of this
  // graph's first row before the layer.
  void advance(int layer, std::int64_t base, RawLayer& raw_layer);
  // Returns the readout of the rows after the last layer, which begin at row `base`.
  RawReadout read_out(std::int64_t base) const;
  // The same for a graph whose rows begin at 0, with cells of the same nodes for any configurations.
  // The nodes that none reaches are common.
  RawReadout read_out_fixed();
  // Number of rows of this graph after the last call of start or advance.
  std::int64_t rows() const {
    return reached_rows_ + static_cast<std::int64_t>(graph_.unreached(layer_).node.size());
  }

 private:
  // The partition of the configurations at each node, and where the rows of its classes begin in
  // colours_.
  struct NodeColours {
    explicit NodeColours(std::int64_t nodes) : partition(nodes), begin(nodes) {}
    void set(std::int32_t node, std::int32_t its_partition, std::int32_t its_begin) {
      partition[node] = its_partition;
      begin[node] = its_begin;
    }
    std::vector<std::int32_t> partition, begin;  // [n]
  };
  // The partition of the configurations by one node's neighbourhood in an edge set, and the
  // neighbourhood of each class.
  struct NodeNeighbourhoods {
    std::int32_t partition = 0;
    std::vector<std::int32_t> neighbourhood;
  };

  // The result for the first node that has a certain list of neighbours. Later nodes with an equal
  // list take this result.
  struct KnownList {
    std::int32_t node = 0;
    NodeNeighbourhoods around;
  };

  // The states that configurations give to one node.
  struct NodeStates {
    std::int32_t partition = 0;
    // [configurations] class of the state; null: the node has no state in any configuration.
    const std::int32_t* label = nullptr;
    const std::int32_t* state = nullptr;  // [configurations] the state's row in the plan
  };
  const NodeStates& states_of(std::int32_t node) const {
    return states_[node_states_.empty() ? 0 : node_states_[node]];
  }
  void label_configs();
  // One number for each configuration: the row of a node before the current layer, relative to this
  // graph's first row, or the node's neighbourhood in an edge set. Valid until the next new
  // partition.
  struct NodeRows {
    const std::int32_t *of_class, *class_of_config;
    std::int32_t operator()(std::int64_t config) const { return of_class[class_of_config[config]]; }
  };
  NodeRows rows_of(std::int32_t node) const {
    return {colours_.data() + of_node_.begin[node],
            partitions_.class_of_config(of_node_.partition[node]).data()};
  }
  void number_unreached_rows();
  void start_neighbourhoods(int layer, std::size_t set, std::int64_t base, RowLists& lists);
  void collect_whole_graph(int layer, std::size_t set, std::int64_t base, RowLists& lists,
                           NodeNeighbourhoods& result);
  void collect_neighbourhoods(int layer, std::size_t set, std::int32_t node, std::int64_t base,
                              RowLists& lists, NodeNeighbourhoods& result);
  void collect_long_list(std::size_t set, std::span<const std::int32_t> sources, std::int64_t base,
                         RowLists& lists, NodeNeighbourhoods& result);
  std::int32_t neighbourhood_of_row(std::size_t set, std::int32_t row, std::int64_t base,
                                    RowLists& lists);
  // The neighbourhood of the rows in `key_`, whose hashes (hash_of_row) add up to `hash`.
  std::int32_t neighbourhood_of_key(std::size_t set, std::uint64_t hash, std::int64_t base,
                                    RowLists& lists);
  bool is_key(std::span<const std::int32_t> list, std::int64_t base);
  std::size_t columns_of(std::int32_t node);
  void add_unreached_rows(int layer, std::int64_t base, RawLayer& raw_layer) const;

  const RefinedGraph& graph_;
  const GraphSlates& graph_slates_;
  std::span<const RefinedSlate> slates_;
  std::span<const SlateOffsets> offsets_;
  int hash_bits_;
  std::uint64_t hash_mask_;
  ConfigPartitions partitions_;
  // The states of nodes: number 0 is for nodes without any. In a tile graph all nodes have number
  // 0.
  std::vector<NodeStates> states_;
  std::vector<std::int32_t> label_, state_;  // [configurable nodes][configurations]
  std::vector<std::int32_t> node_states_;    // [n], or empty
  int layer_ = 0;
  NodeColours of_node_, next_of_node_;
  // The row of each class of each node; the classes of a node begin at NodeColours::begin.
  std::vector<std::int32_t> colours_, next_colours_;
  std::int64_t reached_rows_ = 0;  // the rows of unreached nodes follow

  // The following belong to the layer that `advance` computes; the first four, up to known_lists_,
  // are [edge sets].
  std::vector<std::int64_t> first_neighbourhood_;  // of this graph
  std::vector<std::vector<std::int32_t>> single_;  // [rows before] neighbourhood of a single row
  // Neighbourhoods of several rows, by the sum of their rows' hashes, which does not depend on the
  // order of the rows.
  std::vector<FlatIndex> several_;
  std::vector<std::unordered_map<std::uint64_t, KnownList>> known_lists_;  // by hash of the list
  std::vector<PairTable> row_tables_;  // [edge sets], and one more for states that join
  // For the current node: its sources, its neighbourhoods [edge sets], and the rows of one
  // neighbourhood. Kept in the class only to reuse their memory.
  std::vector<NodeRows> sources_, around_;
  std::vector<std::int32_t> key_;
  std::vector<std::int32_t> count_;  // [rows before] all 0 between calls
  // The rows of the nodes in long lists, and their hashes, for each configuration: columns_ [n]
  // says where those of a node begin, -1: nowhere yet. So the hashes of all configurations are
  // added up at once.
  std::vector<std::int32_t> columns_, row_of_config_;
  std::vector<std::uint64_t> hash_of_config_, sums_;
  std::vector<std::size_t> source_columns_;
};

}  // namespace tpudist
