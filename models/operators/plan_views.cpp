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

NeighbourEntries::NeighbourEntries(const PlanLayer& layer, JoinedUnits* units) {
  // Calls add(row before, times) for each entry of a row.
  const auto for_entries = [&](std::int64_t row, const auto& add) {
    add(layer.self(row), 1);
    for (const EdgeSet& edges : layer.edges) {
      const Csr& matrix = edges.aggregate.forward;
      const std::int64_t replicas = edges.aggregate.replicas, of = edges.neighbourhood(row);
      for (std::int64_t e = matrix.begin[of / replicas]; e < matrix.begin[of / replicas + 1]; ++e)
        add(matrix.source[e] * replicas + of % replicas, matrix.weight_of(e));
    }
  };
  std::vector<RowRun> runs{{0, layer.rows_out}};  // of rows
  if (units) runs = units->of(layer.rows_out).runs;
  std::vector<std::int64_t> counts;  // [runs]
  for (const auto& [begin, rows] : runs) {
    counts.push_back(0);
    for (std::int64_t row = begin; row < begin + rows; ++row)
      for_entries(row, [&](std::int64_t, float) { ++counts.back(); });
  }
  const auto kind = units ? units->kind(counts) : nullptr;
  const auto all = static_cast<std::size_t>(to_index32(kind ? kind->rows : counts[0]));
  Csr &forward = of_row.forward, &transposed = of_row.transposed;
  source.assign(all, -1);
  count.assign(all, 1);
  transposed.source.assign(all, 0);
  forward.begin.push_back(0);
  const auto end_rows = [&](std::int64_t row) {
    forward.begin.resize(static_cast<std::size_t>(row) + 1,
                         static_cast<std::int32_t>(forward.source.size()));
  };
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const auto& [begin, rows] = runs[run];
    std::int64_t entry = kind ? kind->runs[run].begin : 0;
    end_rows(begin);
    for (std::int64_t row = begin; row < begin + rows; ++row) {
      for_entries(row, [&](std::int64_t from, float times) {
        source[entry] = static_cast<std::int32_t>(from);
        count[entry] = times;
        transposed.source[entry] = static_cast<std::int32_t>(row);
        forward.source.push_back(static_cast<std::int32_t>(entry++));
      });
      end_rows(row + 1);
    }
  }
  end_rows(layer.rows_out);
  of_source = transpose_index(source, layer.rows_in);
  std::ranges::replace(source, -1, 0);
  transposed.begin.resize(all + 1);
  std::iota(transposed.begin.begin(), transposed.begin.end(), 0);
}

}  // namespace tpudist
