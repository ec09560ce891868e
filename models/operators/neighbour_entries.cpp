#include "models/operators/neighbour_entries.hpp"

#include <numeric>

namespace tpudist {

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
