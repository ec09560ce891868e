#include "models/plans/dense_rows.hpp"

#include <algorithm>
#include <vector>

#include "models/plans/csr.hpp"
#include "models/plans/graph_edges.hpp"

namespace tpudist {
namespace {

// One edge set along the graphs over all slates: every row uses the rows at the other ends of its
// edges. Parallel edges are merged by multiplicity, so that the sum of a row's weights stays exact.
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
      matrix.begin.push_back(to_index32(matrix.entries()));
    }
  }
  set.aggregate.replicas = static_cast<std::int32_t>(rows.replicas());
  set.aggregate.transposed = transpose(matrix, rows.rows() / rows.replicas());
  return set;
}

// Every row uses all rows of its configuration. With replicas the matrix has one row for each
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
      matrix.begin.push_back(to_index32(matrix.entries()));
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

// Every row uses the rows of its node in all configurations of the slate.
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
    matrix.begin.push_back(to_index32(matrix.entries()));
    ++place;
  }
  set.aggregate.transposed = transpose(matrix, rows.rows());
  set.neighbourhood.transposed = transpose_index(set.neighbourhood.index, place);
  return set;
}

}  // namespace

EdgeSet make_dense_edge_set(std::span<const PlanSlate> slates, EdgeKind kind,
                            Aggregation aggregation, const DenseRows& rows) {
  if (kind == EdgeKind::nodes) return make_nodes_set(slates, rows);
  if (kind == EdgeKind::configs) return make_configs_set(slates, rows);
  return make_graph_set(slates, kind, aggregation, rows);
}

std::int64_t needed_neighbourhoods(const EdgeSet& set, EdgeKind kind, const DenseRows& rows,
                                   std::int64_t places) {
  if (kind == EdgeKind::configs) return places;
  if (kind == EdgeKind::nodes)
    return places ? set.aggregate.forward.rows() * set.aggregate.replicas : 0;
  return rows.first_row(places);
}

}  // namespace tpudist
