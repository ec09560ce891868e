#include "models/plans/plan.hpp"

#include <algorithm>
#include <numeric>
#include <span>

namespace tpudist {
namespace {

// The first `rows` rows of a matrix, with only the entries whose source is below `sources`.
Csr leading(const Csr& matrix, std::int64_t rows, std::int64_t sources) {
  const auto end = static_cast<std::size_t>(matrix.begin[rows]);
  const std::span all(matrix.source.data(), end);
  Csr part;
  part.begin.assign(matrix.begin.begin(), matrix.begin.begin() + rows + 1);
  if (all.empty() || std::ranges::max(all) < sources) {
    part.source.assign(all.begin(), all.end());
    if (!matrix.weight.empty())
      part.weight.assign(matrix.weight.begin(), matrix.weight.begin() + end);
    return part;
  }
  part.source.resize(end);
  part.weight.resize(matrix.weight.empty() ? 0 : end);
  std::int32_t size = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    // Entries are sorted by source.
    for (std::int32_t e = matrix.begin[row]; e < matrix.begin[row + 1] && all[e] < sources; ++e) {
      part.source[size] = all[e];
      if (!part.weight.empty()) part.weight[size] = matrix.weight[e];
      ++size;
    }
    part.begin[row + 1] = size;
  }
  part.source.resize(static_cast<std::size_t>(size));
  if (!part.weight.empty()) part.weight.resize(part.source.size());
  return part;
}

SparseMatrix leading(const SparseMatrix& matrix, std::int64_t rows, std::int64_t sources) {
  const std::int64_t replicas = matrix.replicas;
  return {leading(matrix.forward, rows / replicas, sources / replicas),
          leading(matrix.transposed, sources / replicas, rows / replicas), matrix.replicas};
}

std::vector<std::int32_t> leading(std::span<const std::int32_t> index, std::int64_t rows) {
  const auto part = index.first(std::min(index.size(), static_cast<std::size_t>(rows)));
  return {part.begin(), part.end()};
}

// The first `rows` rows of an index; their values must be below `limit`.
GatherIndex leading(const GatherIndex& gather, std::int64_t rows, std::int64_t limit) {
  if (!gather.is_identity())
    return {leading(gather.index, rows), leading(gather.transposed, limit, rows)};
  if (rows == limit) return {};
  GatherIndex part;
  part.index.resize(static_cast<std::size_t>(rows));
  std::iota(part.index.begin(), part.index.end(), 0);
  part.transposed = transpose_index(part.index, limit);
  return part;
}

std::shared_ptr<const PlanLayer> leading(const PlanLayer& layer, const NeededCounts& counts,
                                         std::int64_t rows_in) {
  auto part = std::make_shared<PlanLayer>();
  part->rows_in = rows_in;
  part->rows_out = counts.rows;
  part->self = leading(layer.self, counts.rows, rows_in);
  for (std::size_t set = 0; set < layer.edges.size(); ++set) {
    const EdgeSet& edges = layer.edges[set];
    const std::int64_t count = counts.neighbourhoods[set];
    part->edges.push_back({leading(edges.aggregate, count, rows_in),
                           leading(edges.neighbourhood, counts.rows, count)});
  }
  part->state = leading(layer.state, counts.rows);
  return part;
}

Readout without_common(const Readout& readout, std::int64_t rows) {
  Readout part;
  part.cells = leading(readout.cells, readout.cells.forward.rows(), rows);
  part.scores = readout.scores;
  const Csr& common = readout.common.forward;
  part.common = leading(readout.common, common.rows(), 0);
  part.common.transposed.begin.assign(static_cast<std::size_t>(rows) + 1, 0);
  for (std::int64_t slate = 0; slate < common.rows(); ++slate) {
    double nodes = readout.left_out.empty() ? 0 : readout.left_out[slate];
    for (std::int64_t e = common.begin[slate]; e < common.begin[slate + 1]; ++e)
      nodes += common.weight_of(e);
    part.left_out.push_back(nodes);
  }
  part.slate_of_config = readout.slate_of_config;
  return part;
}

// How many rows and neighbourhoods the part has.
struct Extent {
  std::vector<std::int64_t> rows;    // [depth + 1]
  std::vector<NeededCounts> counts;  // [depth]
};

bool groups_rows(const LayerShape& layer) {
  return layer.edge_kinds == std::vector{EdgeKind::nodes} ||
         layer.edge_kinds == std::vector{EdgeKind::configs};
}

// Whether the first `rows` rows contain only a part of one of the first `groups` groups.
bool cuts_groups(const Csr& rows_of_group, std::int64_t groups, std::int64_t rows) {
  for (std::int64_t e = 0; e < rows_of_group.begin[groups]; ++e) {
    if (rows_of_group.source[e] >= rows) return true;
  }
  return false;
}

NeededCounts all_of(const PlanLayer& layer) {
  NeededCounts counts{layer.rows_out, layer.rows_in, {}};
  for (const EdgeSet& edges : layer.edges)
    counts.neighbourhoods.push_back(edges.aggregate.forward.rows() * edges.aggregate.replicas);
  return counts;
}

Extent extent_of(const Plan& plan, const PlanShape& shape) {
  Extent extent{{}, plan.needed_counts};
  for (std::size_t depth = 0; depth <= plan.layers.size(); ++depth)
    extent.rows.push_back(plan.needed_rows(depth));
  for (std::size_t i = plan.layers.size(); i-- > 0;) {
    const NeededCounts& counts = plan.needed_counts[i];
    if (!groups_rows(shape.layers[i]) ||
        !cuts_groups(plan.layers[i]->edges[0].neighbourhood.transposed, counts.neighbourhoods[0],
                     counts.rows)) {
      continue;
    }
    for (std::size_t depth = 0; depth <= i + 1; ++depth) extent.rows[depth] = plan.rows(depth);
    for (std::size_t layer = 0; layer <= i; ++layer)
      extent.counts[layer] = all_of(*plan.layers[layer]);
    break;
  }
  return extent;
}

}  // namespace

std::shared_ptr<const Plan> needed_part(const Plan& plan, const PlanShape& shape) {
  const Extent extent = extent_of(plan, shape);
  bool whole = plan.readout.common.forward.entries() == 0;
  for (std::size_t depth = 0; depth <= plan.layers.size(); ++depth) {
    if (extent.rows[depth] == 0) return nullptr;
    whole = whole && extent.rows[depth] == plan.rows(depth);
  }
  if (whole) return nullptr;
  auto part = std::make_shared<Plan>();
  const std::int64_t first_rows = extent.rows[0];
  part->nodes = plan.nodes;
  part->states = plan.states;
  part->configs = plan.configs;
  part->needed_first_rows = first_rows;
  part->node = leading(plan.node, first_rows);
  part->state = leading(plan.state, first_rows);
  part->rows_of_node = leading(plan.rows_of_node, plan.rows_of_node.rows(), first_rows);
  part->rows_of_state = leading(plan.rows_of_state, plan.rows_of_state.rows(), first_rows);
  part->state_of_config = plan.state_of_config;
  for (std::size_t i = 0; i < plan.layers.size(); ++i)
    part->layers.push_back(leading(*plan.layers[i], extent.counts[i], extent.rows[i]));
  part->needed_counts = extent.counts;
  part->readout = without_common(plan.readout, extent.rows.back());
  return part;
}

double needed_share(const Plan& plan, const PlanShape& shape) {
  double all = 0, kept = 0;
  for (const std::int64_t rows : extent_of(plan, shape).rows) kept += static_cast<double>(rows);
  for (std::size_t depth = 0; depth <= plan.layers.size(); ++depth)
    all += static_cast<double>(plan.rows(depth));
  return all > 0 ? kept / all : 1;
}

}  // namespace tpudist
