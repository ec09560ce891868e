#include "models/operators/plan_views.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"

namespace tpudist {
namespace {

const EdgeSet& only_edge_set(const PlanLayer& layer) {
  if (layer.edges.size() != 1 || layer.edges[0].neighbourhood.is_identity() || !layer.state.empty())
    throw Error(ErrorKind::failed,
                "row groups need a layer with one edge set along nodes or "
                "configurations");
  return layer.edges[0];
}

// The weight of an entry, found by its source.
float weight_at(const Csr& matrix, std::int64_t row, std::int32_t source) {
  const auto first = matrix.source.begin() + matrix.begin[row],
             last = matrix.source.begin() + matrix.begin[row + 1];
  const auto found = std::lower_bound(first, last, source);
  if (found == last || *found != source)
    throw Error(ErrorKind::failed, "a row of a plan does not stand in its own group");
  return matrix.weight_of(found - matrix.source.begin());
}

}  // namespace

RowGroups::RowGroups(const PlanLayer& layer)
    : rows(only_edge_set(layer).neighbourhood.transposed),
      of_row(layer.edges[0].neighbourhood.index) {
  const EdgeSet& edges = layer.edges[0];
  const Csr& matrix = edges.aggregate.forward;
  const std::int64_t replicas = edges.aggregate.replicas;
  count.assign(static_cast<std::size_t>(layer.rows_out), 1);
  size.assign(static_cast<std::size_t>(matrix.rows() * replicas), 0);
  if (!matrix.weight.empty()) {
    for (std::int64_t group = 0; group < groups(); ++group) {
      for (std::int64_t e = rows.begin[group]; e < rows.begin[group + 1]; ++e) {
        const std::int32_t row = rows.source[e], own = layer.self(row);
        count[row] = weight_at(matrix, group / replicas, static_cast<std::int32_t>(own / replicas));
      }
    }
  }
  for (std::int64_t group = 0; group < groups(); ++group) {
    for (std::int64_t e = rows.begin[group]; e < rows.begin[group + 1]; ++e)
      size[group] += count[rows.source[e]];
    if (size[group] != matrix.total_weight(group / replicas))
      throw Error(ErrorKind::failed, "a group of a plan lacks some of its rows");
  }
}

NeighbourEntries::NeighbourEntries(const PlanLayer& layer) {
  Csr &forward = of_row.forward, &transposed = of_row.transposed;
  const auto add = [&](std::int64_t row, std::int64_t from, float times) {
    source.push_back(to_index32(from));
    count.push_back(times);
    transposed.source.push_back(to_index32(row));
  };
  forward.begin.push_back(0);
  for (std::int64_t row = 0; row < layer.rows_out; ++row) {
    add(row, layer.self(row), 1);
    for (const EdgeSet& edges : layer.edges) {
      const Csr& matrix = edges.aggregate.forward;
      const std::int64_t replicas = edges.aggregate.replicas, of = edges.neighbourhood(row);
      for (std::int64_t e = matrix.begin[of / replicas]; e < matrix.begin[of / replicas + 1]; ++e)
        add(row, matrix.source[e] * replicas + of % replicas, matrix.weight_of(e));
    }
    forward.begin.push_back(to_index32(static_cast<std::int64_t>(source.size())));
  }
  of_source = transpose_index(source, layer.rows_in);
  forward.source.resize(source.size());
  std::iota(forward.source.begin(), forward.source.end(), 0);
  transposed.begin.resize(source.size() + 1);
  std::iota(transposed.begin.begin(), transposed.begin.end(), 0);
}

}  // namespace tpudist
