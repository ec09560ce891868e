#include "models/plans/plan.hpp"

#include <set>

namespace tpudist {
namespace {

template <typename T>
std::uint64_t bytes_of(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

std::uint64_t bytes_of(const Csr& csr) {
  return bytes_of(csr.begin) + bytes_of(csr.source) + bytes_of(csr.weight);
}

std::uint64_t bytes_of(const SparseMatrix& matrix) {
  return bytes_of(matrix.forward) + bytes_of(matrix.transposed);
}

std::uint64_t bytes_of(const GatherIndex& gather) {
  return bytes_of(gather.index) + bytes_of(gather.transposed);
}

}  // namespace

std::int64_t Plan::total_rows() const {
  std::int64_t rows = first_rows();
  for (const auto& layer : layers) rows += layer->rows_out;
  return rows;
}

std::uint64_t Plan::bytes() const {
  std::uint64_t bytes = bytes_of(node) + bytes_of(state) + bytes_of(state_of_config) +
                        bytes_of(readout.slate_of_config) + bytes_of(config);
  bytes += bytes_of(rows_of_node) + bytes_of(rows_of_state);
  for (const SparseMatrix* matrix : {&readout.cells, &readout.scores, &readout.common}) {
    bytes += bytes_of(*matrix);
  }
  std::set<const PlanLayer*> seen;
  for (const auto& layer : layers) {
    if (!seen.insert(layer.get()).second) continue;
    bytes += bytes_of(layer->self) + bytes_of(layer->state);
    for (const EdgeSet& edges : layer->edges) {
      bytes += bytes_of(edges.aggregate) + bytes_of(edges.neighbourhood);
    }
  }
  return bytes;
}

}  // namespace tpudist
