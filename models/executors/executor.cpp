#include "models/executors/executor.hpp"

#include <string>

#include "core/error.hpp"
#include "models/inputs/graph_input.hpp"

namespace tpudist {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw Error(ErrorKind::failed, "network call: " + what);
}

}  // namespace

void check_call(const CallShape& shape, const MemberRange& members, const UnitInput& input) {
  require(input.plan != nullptr, "no plan");
  const Plan& plan = *input.plan;
  std::int64_t nodes = 0;
  for (const auto& graph : input.graphs) nodes += graph->nodes();
  require(nodes == plan.nodes, "the graphs have " + std::to_string(nodes) +
                                   " nodes, the plan has " + std::to_string(plan.nodes));
  require(static_cast<std::int64_t>(input.states.size()) == plan.states * shape.config_features,
          "the state table is not [" + std::to_string(plan.states) + ", " +
              std::to_string(shape.config_features) + "]");
  require(plan.layers.size() == shape.edge_sets.size(), "the plan has another number of layers");
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    require(plan.layers[i]->edges.size() == shape.edge_sets[i],
            "layer " + std::to_string(i) + " of the plan mixes another number of edge sets");
  }
  require(static_cast<std::int64_t>(members.flat.size()) % shape.parameters == 0,
          "parameters are not [members, P]");
  const std::int64_t held = members.flat.size() / shape.parameters;
  require(members.first >= 0 && members.count >= 0 && members.first + members.count <= held,
          "members out of range");
}

void check_score_gradient(const UnitScores& scores, const ScoreGradient& gradient) {
  require(gradient.values.size() == scores.delta.size(),
          "the loss gradient is not [members, configurations]");
  require(gradient.translation_invariant.empty() ||
              static_cast<int>(gradient.translation_invariant.size()) == scores.members,
          "the loss names another number of members");
}

namespace {

double weighted_sum(const Csr& csr, std::int64_t row, std::span<const double> values) {
  double total = 0;
  for (std::int64_t e = csr.begin[row]; e < csr.begin[row + 1]; ++e)
    total += csr.weight_of(e) * values[csr.source[e]];
  return total;
}

}  // namespace

void read_out_scores(const Readout& readout, std::span<const double> values, double scale,
                     std::span<double> delta, std::span<double> common) {
  std::vector<double> cells(readout.cells.forward.rows());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i] = scale * weighted_sum(readout.cells.forward, i, values);
  }
  for (std::size_t i = 0; i < delta.size(); ++i)
    delta[i] = weighted_sum(readout.scores.forward, i, cells);
  const bool all = static_cast<std::int64_t>(values.size()) == readout.common.transposed.rows();
  for (std::size_t i = 0; i < common.size(); ++i) {
    common[i] = all ? scale * weighted_sum(readout.common.forward, i, values) : 0;
  }
}

CellGradient spread_to_cells(const Readout& readout, std::span<const double> score_gradient,
                             double scale) {
  CellGradient gradient;
  for (std::int64_t cell = 0; cell < readout.scores.transposed.rows(); ++cell) {
    gradient.cell.push_back(scale * weighted_sum(readout.scores.transposed, cell, score_gradient));
  }
  gradient.slate.assign(readout.common.forward.rows(), 0.0);
  for (std::size_t k = 0; k < score_gradient.size(); ++k)
    gradient.slate[readout.slate_of_config[k]] += scale * score_gradient[k];
  return gradient;
}

void spread_to_rows(const Readout& readout, const CellGradient& gradient, std::int64_t first,
                    std::span<float> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t row = first + static_cast<std::int64_t>(i);
    rows[i] = static_cast<float>(weighted_sum(readout.cells.transposed, row, gradient.cell) +
                                 weighted_sum(readout.common.transposed, row, gradient.slate));
  }
}

}  // namespace tpudist
