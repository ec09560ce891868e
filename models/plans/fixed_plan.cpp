#include <algorithm>
#include <utility>

#include "models/plans/build_plan.hpp"
#include "models/plans/csr.hpp"
#include "models/plans/kept_rows.hpp"
#include "models/plans/slate_refiner.hpp"

namespace tpudist {
namespace {

// The hashes of rows of an UnorderedPlan before layer 0 .. depth.
using RowHashes = std::vector<std::vector<ContentHash>>;

bool keeps_cells(const KeptUse& use) {
  return use.rows && use.rows->keeps(use.levels.size() - 1);
}

ContentHash hash_of_number(std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  return {mix_hash(bits + 0x2545f4914f6cdd1dull), mix_hash(bits + 0x9fb21c651e98df25ull)};
}

ContentHash with_state(const ContentHash& hash, std::int32_t state,
                       std::span<const ContentHash> states) {
  return hash.then(state < 0 ? ContentHash() : states[state]);
}

RowHashes row_hashes(const UnorderedPlan& raw, std::span<const ContentHash> states) {
  RowHashes hashes(1);
  for (std::size_t row = 0; row < raw.node.size(); ++row)
    hashes[0].push_back(with_state(hash_of_number(raw.node[row]), raw.state[row], states));
  std::vector<ContentHash> around;
  for (const RawLayer& layer : raw.layers) {
    const std::vector<ContentHash>& before = hashes.back();
    std::vector<ContentHash> behind(layer.self.size());
    for (std::size_t row = 0; row < behind.size(); ++row) {
      behind[row] = before[layer.self[row]].then({1, 1});
      if (!layer.state.empty()) behind[row] = with_state(behind[row], layer.state[row], states);
    }
    for (std::size_t set = 0; set < layer.neighbourhoods.size(); ++set) {
      const RowLists& lists = layer.neighbourhoods[set];
      around.assign(static_cast<std::size_t>(lists.size()), {});
      for (std::int64_t list = 0; list < lists.size(); ++list) {
        for (const std::int32_t row : lists.of(list)) around[list].add(before[row]);
      }
      for (std::size_t row = 0; row < behind.size(); ++row)
        behind[row] = behind[row].then(around[layer.neighbourhood[set][row]]);
    }
    hashes.push_back(std::move(behind));
  }
  return hashes;
}

// Numbers raw rows or lists by their first use.
class ByUse {
 public:
  explicit ByUse(std::size_t size) : place_(size, -1) {}
  std::int32_t place(std::int32_t raw) {
    if (place_[raw] < 0) {
      place_[raw] = to_index32(std::ssize(used_));
      used_.push_back(raw);
    }
    return place_[raw];
  }
  const std::vector<std::int32_t>& used() const { return used_; }

 private:
  std::vector<std::int32_t> place_, used_;
};

// Appends a list of rows, which are sorted by their hashes, as a row of a matrix.
void add_list(std::vector<std::pair<ContentHash, std::int32_t>>& rows, double weight, ByUse& before,
              Csr& matrix) {
  std::ranges::sort(rows);
  for (std::size_t i = 0, end; i < rows.size(); i = end) {
    for (end = i + 1; end < rows.size() && rows[end].second == rows[i].second;) ++end;
    matrix.source.push_back(before.place(rows[i].second));
    matrix.weight.push_back(static_cast<float>(static_cast<double>(end - i) * weight));
  }
  matrix.begin.push_back(to_index32(matrix.entries()));
}

// The layer that computes the rows `behind`, from the rows that `before` then names.
std::shared_ptr<const PlanLayer> layer_of(const RawLayer& raw, const LayerShape& shape,
                                          const std::vector<std::int32_t>& behind,
                                          const std::vector<ContentHash>& hashes,
                                          std::int64_t states, ByUse& before) {
  auto layer = std::make_shared<PlanLayer>();
  layer->rows_out = std::ssize(behind);
  for (const std::int32_t row : behind) layer->self.index.push_back(before.place(raw.self[row]));
  if (shape.joins_states) {
    for (const std::int32_t row : behind) layer->state.push_back(raw.state[row]);
    layer->rows_of_state = transpose_index(layer->state, states);
  }
  std::vector<std::pair<ContentHash, std::int32_t>> rows;
  for (std::size_t set = 0; set < raw.neighbourhoods.size(); ++set) {
    EdgeSet& edges = layer->edges.emplace_back();
    const RowLists& lists = raw.neighbourhoods[set];
    ByUse lists_used(static_cast<std::size_t>(lists.size()));
    for (const std::int32_t row : behind)
      edges.neighbourhood.index.push_back(lists_used.place(raw.neighbourhood[set][row]));
    Csr& matrix = edges.aggregate.forward;
    matrix.begin.push_back(0);
    for (const std::int32_t list : lists_used.used()) {
      const std::span<const std::int32_t> of_list = lists.of(list);
      const bool divided = shape.aggregation == Aggregation::mean && !of_list.empty();
      rows.clear();
      for (const std::int32_t row : of_list) rows.emplace_back(hashes[row], row);
      add_list(rows, divided ? 1.0 / static_cast<double>(of_list.size()) : 1.0, before, matrix);
    }
  }
  layer->rows_in = std::ssize(before.used());
  return layer;
}

// A matrix without rows, and the appending of a row.
Csr no_rows() {
  Csr matrix;
  matrix.begin.push_back(0);
  return matrix;
}
void add_row(std::span<const std::int32_t> sources, Csr& matrix) {
  matrix.source.insert(matrix.source.end(), sources.begin(), sources.end());
  matrix.begin.push_back(to_index32(matrix.entries()));
}

// The rows keep the order of the nodes.
void add_sum(std::span<const std::int32_t> list, ByUse& rows, Csr& matrix) {
  for (const std::int32_t row : list) matrix.source.push_back(rows.place(row));
  add_row({}, matrix);
}

// The readout of the cells, or of those that use.rows lacks. The last cell that a call takes is that
// of the common rows.
Readout readout_of(const RawReadout& raw, const std::vector<ContentHash>& hashes,
                   std::int64_t nodes, ByUse& rows, KeptUse& use) {
  Readout readout;
  Csr &cells = readout.cells.forward, &common = readout.common.forward;
  cells = common = readout.scores.forward = no_rows();
  for (std::int64_t config = 0; config < raw.cells_of_config.size(); ++config)
    add_row(raw.cells_of_config.of(config), readout.scores.forward);
  readout.slate_of_config.assign(static_cast<std::size_t>(raw.cells_of_config.size()), 0);
  if (!keeps_cells(use)) {
    for (std::int64_t cell = 0; cell < raw.cells.size(); ++cell)
      add_sum(raw.cells.of(cell), rows, cells);
    add_sum(raw.common.of(0), rows, common);
    return readout;
  }
  KeptLevel& level = use.levels.back();
  const auto add_cell = [&](std::span<const std::int32_t> list) {
    ContentHash hash{2, 2};
    for (const std::int32_t row : list) hash = hash.then(hashes[row]);
    bool fresh = false;
    level.taken.push_back(use.rows->place(use.levels.size() - 1, hash, fresh));
    if (!fresh) return;
    level.computed.push_back(level.taken.back());
    add_sum(list, rows, cells);
  };
  for (std::int64_t cell = 0; cell < raw.cells.size(); ++cell) add_cell(raw.cells.of(cell));
  add_cell(raw.common.of(0));
  add_row({}, common);
  readout.left_out = {static_cast<double>(nodes)};
  return readout;
}

}  // namespace

Plan build_fixed_plan(const RefinedSlate& slate, std::span<const ContentHash> state_hash,
                      KeptUse& use) {
  const RefinedGraph& graph = *slate.graph;
  const PlanShape& shape = graph.shape();
  const std::size_t depth = shape.layers.size();
  Plan plan;
  plan.nodes = std::max(graph.classes(), slate.input_rows);
  plan.states = slate.state_rows;
  plan.configs = slate.configs;
  const GraphSlates alone{&graph, {0}, slate.configs, 0};
  const SlateOffsets offsets{0, 0, 0};
  UnorderedPlan raw;
  SlateRefiner refiner(alone, std::span(&slate, 1), std::span(&offsets, 1), 64);
  refiner.start(raw);
  for (std::size_t i = 0; i < depth; ++i) {
    RawLayer& layer = raw.layers.emplace_back();
    layer.neighbourhood.resize(shape.layers[i].edge_kinds.size());
    layer.neighbourhoods.resize(shape.layers[i].edge_kinds.size());
    refiner.advance(static_cast<int>(i), 0, layer);
  }
  const RowHashes hashes = row_hashes(raw, state_hash);
  ByUse rows(hashes[depth].size());
  use.levels.resize(depth + 2);
  const RawReadout readout = refiner.read_out_fixed();
  plan.readout = readout_of(readout, hashes[depth], graph.nodes(), rows, use);
  if (shape.mean_readout) {
    const auto weight = static_cast<float>(1.0 / static_cast<double>(graph.nodes()));
    for (Csr* sums : {&plan.readout.cells.forward, &plan.readout.common.forward})
      sums->weight.assign(sums->source.size(), weight);
  }
  plan.readout.common.transposed.begin.assign(rows.used().size() + 1, 0);
  plan.layers.resize(depth);
  plan.needed_counts.resize(depth);
  // From the last layer down: the rows at each depth that the plan computes.
  for (std::size_t at = depth;; --at) {
    std::vector<std::int32_t> computed;
    if (use.rows && use.rows->keeps(at)) {
      KeptLevel& level = use.levels[at];
      for (const std::int32_t row : rows.used()) {
        bool fresh = false;
        level.taken.push_back(use.rows->place(at, hashes[at][row], fresh));
        if (!fresh) continue;
        level.computed.push_back(level.taken.back());
        computed.push_back(row);
      }
    } else {
      computed = rows.used();
    }
    if (at == 0) {
      for (const std::int32_t row : computed) {
        plan.node.push_back(raw.node[row]);
        plan.state.push_back(raw.state[row]);
      }
      return plan;
    }
    ByUse before(hashes[at - 1].size());
    plan.layers[at - 1] = layer_of(raw.layers[at - 1], shape.layers[at - 1], computed,
                                   hashes[at - 1], plan.states, before);
    plan.needed_counts[at - 1].neighbourhoods.resize(plan.layers[at - 1]->edges.size());
    rows = std::move(before);
  }
}

}  // namespace tpudist
