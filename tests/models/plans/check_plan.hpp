#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {
namespace checked_plan {

inline void require(bool holds, const std::string& what) {
  if (!holds) throw Error(ErrorKind::failed, "broken plan: " + what);
}

inline void check_csr(const Csr& csr, std::int64_t rows, std::int64_t columns,
                      const std::string& name) {
  require(csr.rows() == rows,
          name + " has " + std::to_string(csr.rows()) + " rows instead of " + std::to_string(rows));
  require(csr.begin.front() == 0 && csr.begin.back() == csr.entries(),
          name + ": offsets do not span the entries");
  require(csr.weight.empty() || csr.weight.size() == csr.source.size(),
          name + ": weights and sources differ in number");
  require(std::ranges::is_sorted(csr.begin), name + ": offsets decrease");
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t e = csr.begin[row]; e < csr.begin[row + 1]; ++e) {
      require(csr.source[e] >= 0 && csr.source[e] < columns, name + ": source out of range");
      require(e == csr.begin[row] || csr.source[e - 1] < csr.source[e],
              name + ": sources of row " + std::to_string(row) + " not sorted or not merged");
    }
  }
}

// An entry of a matrix by its row and column.
using Entry = std::tuple<std::int64_t, std::int64_t, float>;

inline std::vector<Entry> sorted_entries(const Csr& csr, bool swapped) {
  std::vector<Entry> entries;
  for (std::int64_t row = 0; row < csr.rows(); ++row) {
    for (std::int64_t e = csr.begin[row]; e < csr.begin[row + 1]; ++e) {
      const std::int64_t source = csr.source[e];
      entries.emplace_back(swapped ? source : row, swapped ? row : source, csr.weight_of(e));
    }
  }
  std::ranges::sort(entries);
  return entries;
}

inline void check_matrix(const SparseMatrix& matrix, std::int64_t rows_in, std::int64_t rows_out,
                         const std::string& name) {
  const std::int64_t replicas = matrix.replicas;
  require(replicas >= 1 && rows_in % replicas == 0 && rows_out % replicas == 0,
          name + ": rows are no multiple of the replicas");
  check_csr(matrix.forward, rows_out / replicas, rows_in / replicas, name + ".forward");
  check_csr(matrix.transposed, rows_in / replicas, rows_out / replicas, name + ".transposed");
  require(sorted_entries(matrix.forward, true) == sorted_entries(matrix.transposed, false),
          name + ": not the exact transpose");
}

// A matrix of the readout, which has one row for each configuration or slate.
inline void check_readout_matrix(const SparseMatrix& matrix, std::int64_t rows_in,
                                 std::int64_t rows_out, const std::string& name) {
  require(matrix.replicas == 1, name + ": has replicas");
  check_matrix(matrix, rows_in, rows_out, name);
}

inline void check_range(const std::vector<std::int32_t>& index, std::int64_t low,
                        std::int64_t limit, const std::string& name) {
  for (const std::int32_t i : index) require(i >= low && i < limit, name + ": index out of range");
}

inline void check_index(const std::vector<std::int32_t>& index, std::int64_t low,
                        std::int64_t limit, const Csr& transposed, const std::string& name) {
  check_range(index, low, limit, name);
  std::vector<Entry> entries;
  for (std::size_t row = 0; row < index.size(); ++row) {
    if (index[row] >= 0) entries.emplace_back(index[row], row, 1.0f);
  }
  check_csr(transposed, limit, static_cast<std::int64_t>(index.size()), "rows_of_" + name);
  std::ranges::sort(entries);
  require(transposed.weight.empty() && entries == sorted_entries(transposed, false),
          "rows_of_" + name + ": not the transpose");
}

inline void check_gather(const GatherIndex& gather, std::int64_t rows, std::int64_t limit,
                         const std::string& name) {
  if (gather.is_identity()) {
    require(rows == limit, name + ": needs an explicit index");
    return;
  }
  require(static_cast<std::int64_t>(gather.index.size()) == rows, name + ": wrong length");
  check_index(gather.index, 0, limit, gather.transposed, name);
}

// The values of the first `needed` entries of a gather index must be below `limit`.
inline void check_needed(const GatherIndex& gather, std::int64_t needed, std::int64_t limit,
                         const std::string& name) {
  for (std::int64_t row = 0; row < needed; ++row) {
    require(gather(row) < limit, name + ": a needed row takes what is not needed");
  }
}

// `is_part`: for the needed part of a plan, which gathers a prefix by an index.
inline void check_layer(const PlanLayer& layer, std::int64_t states, bool is_part,
                        const std::string& name) {
  check_gather(layer.self, layer.rows_out, layer.rows_in, name + ".self");
  if (!layer.state.empty()) {
    require(static_cast<std::int64_t>(layer.state.size()) == layer.rows_out,
            name + ".state: wrong length");
    check_range(layer.state, -1, states, name + ".state");
  }
  for (const EdgeSet& edges : layer.edges) {
    const std::int64_t neighbourhoods = edges.aggregate.forward.rows() * edges.aggregate.replicas;
    require(is_part || !edges.neighbourhood.is_identity() || layer.self.is_identity(),
            name + ": gathers only in part");
    check_matrix(edges.aggregate, layer.rows_in, neighbourhoods, name + ".aggregate");
    check_gather(edges.neighbourhood, layer.rows_out, neighbourhoods, name + ".neighbourhood");
  }
}

inline void check_needed_counts(const PlanLayer& layer, const NeededCounts& counts,
                                std::int64_t needed_in, const std::string& name) {
  require(counts.rows >= 0 && counts.rows <= layer.rows_out, name + ": needed rows out of range");
  require(counts.self_rows >= 0 && counts.self_rows <= needed_in,
          name + ": a needed row's own state is not needed");
  require(counts.neighbourhoods.size() == layer.edges.size(),
          name + ": edge sets and counts of needed neighbourhoods differ in number");
  check_needed(layer.self, counts.rows, counts.self_rows, name + ".self");
  for (std::size_t set = 0; set < layer.edges.size(); ++set) {
    const SparseMatrix& matrix = layer.edges[set].aggregate;
    const std::int64_t count = counts.neighbourhoods[set], replicas = matrix.replicas;
    require(count >= 0 && count <= matrix.forward.rows() * replicas && count % replicas == 0,
            name + ": needed neighbourhoods out of range");
    check_needed(layer.edges[set].neighbourhood, counts.rows, count, name + ".neighbourhood");
    for (std::int64_t e = 0; e < matrix.forward.begin[count / replicas]; ++e) {
      require((matrix.forward.source[e] + 1) * replicas <= needed_in,
              name + ": a needed neighbourhood takes what is not needed");
    }
  }
}

inline void check_readout(const Plan& plan, std::int64_t rows) {
  const Readout& readout = plan.readout;
  const std::int64_t cells = readout.cells.forward.rows(), slates = readout.common.forward.rows();
  check_readout_matrix(readout.cells, rows, cells, "readout.cells");
  check_readout_matrix(readout.scores, cells, plan.configs, "readout.scores");
  check_readout_matrix(readout.common, rows, slates, "readout.common");
  for (const std::int32_t row : readout.cells.forward.source) {
    require(row < plan.needed_rows(plan.layers.size()), "readout: takes what is not needed");
  }
  require(static_cast<std::int64_t>(readout.slate_of_config.size()) == plan.configs,
          "readout.slate_of_config: wrong length");
  for (const std::int32_t slate : readout.slate_of_config) {
    require(slate >= 0 && slate < slates, "readout.slate_of_config: out of range");
  }
  require(readout.left_out.empty() || static_cast<std::int64_t>(readout.left_out.size()) == slates,
          "readout.left_out: wrong length");
}

}  // namespace checked_plan

// Throws Error, which names the fault, when a plan violates an invariant: sizes, ranges, sorted and
// merged sources, exact transposes, and needed rows that depend only on needed rows. Shares no code
// with the plan builders.
inline void check_plan(const Plan& plan) {
  using namespace checked_plan;
  require(plan.node.size() == plan.state.size(), "node and state differ in length");
  check_index(plan.node, 0, plan.nodes, plan.rows_of_node, "node");
  check_index(plan.state, -1, plan.states, plan.rows_of_state, "state");
  require(plan.config.empty() || plan.config.size() == plan.node.size(),
          "node and config differ in length");
  require(plan.config.empty() || !plan.is_refined(), "a refined plan says configurations of rows");
  for (const std::int32_t config : plan.config)
    require(config >= 0 && config < plan.configs, "config: out of range");
  require(plan.needed_first_rows >= 0 && plan.needed_first_rows <= plan.first_rows(),
          "needed first rows out of range");
  require(plan.needed_counts.size() == plan.layers.size(),
          "layers and needed counts differ in number");
  const bool is_part = !plan.readout.left_out.empty();
  std::int64_t rows = plan.first_rows();
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    const PlanLayer& layer = *plan.layers[i];
    const std::string name = "layer " + std::to_string(i);
    require(layer.rows_in == rows, name + ": does not take the rows before it");
    require(is_part || layer.self.is_identity() != plan.is_refined(),
            name + ": gathers unlike the others");
    check_layer(layer, plan.states, is_part, name);
    check_needed_counts(layer, plan.needed_counts[i], plan.needed_rows(i), name);
    rows = layer.rows_out;
  }
  for (const std::int32_t state : plan.state_of_config)
    require(state >= 0 && state < plan.states, "state_of_config: out of range");
  require(plan.state_of_config.empty() ||
              static_cast<std::int64_t>(plan.state_of_config.size()) == plan.configs,
          "state_of_config: wrong length");
  check_readout(plan, rows);
}

}  // namespace tpudist
