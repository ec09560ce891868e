#include "models/executor.hpp"

#include <string>

#include "core/error.hpp"
#include "models/graph_input.hpp"

namespace tpudist {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw Error(ErrorKind::failed, "network call: " + what);
}

}  // namespace

void check_call(const NetworkLayout& layout, const MemberRange& members, const UnitInput& input) {
  require(input.plan != nullptr, "no plan");
  const Plan& plan = *input.plan;
  std::int64_t nodes = 0;
  for (const auto& graph : input.graphs) nodes += graph->nodes();
  require(nodes == plan.nodes, "the graphs have " + std::to_string(nodes) +
                                   " nodes, the plan has " + std::to_string(plan.nodes));
  require(static_cast<std::int64_t>(input.states.size()) == plan.states * layout.config_features,
          "the state table is not [" + std::to_string(plan.states) + ", " +
              std::to_string(layout.config_features) + "]");
  require(plan.steps.size() == layout.layers.size(), "the plan has another number of layers");
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    require(plan.steps[i]->edges.size() + 1 == layout.layers[i].weights.size(),
            "layer " + std::to_string(i) + " of the plan mixes another number of edge sets");
  }
  require(static_cast<std::int64_t>(members.flat.size()) % layout.table.length() == 0,
          "parameters are not [members, P]");
  const std::int64_t held = members.flat.size() / layout.table.length();
  require(members.first >= 0 && members.count >= 0 && members.first + members.count <= held,
          "members out of range");
}

void check_score_gradient(const UnitScores& scores, std::span<const double> gradient) {
  require(gradient.size() == scores.delta.size(),
          "the loss gradient is not [members, configurations]");
}

void pool_scores(const Readout& readout, std::span<const double> values, double scale,
                 std::span<double> delta, std::span<double> common) {
  const auto sum = [&](const Csr& csr, std::int64_t row) {
    double total = 0;
    for (std::int64_t e = csr.begin[row]; e < csr.begin[row + 1]; ++e)
      total += csr.weight[e] * values[csr.source[e]];
    return total * scale;
  };
  for (std::size_t i = 0; i < delta.size(); ++i) delta[i] = sum(readout.pool, i);
  for (std::size_t i = 0; i < common.size(); ++i) common[i] = sum(readout.common, i);
}

void spread_gradient(const Readout& readout, std::span<const double> score_gradient, double scale,
                     std::int64_t first, std::span<float> gradient) {
  const Csr &own = readout.transpose, &common = readout.common_transpose;
  std::vector<double> of_slate;
  if (common.entries()) {
    of_slate.assign(readout.common.rows(), 0.0);
    for (std::size_t k = 0; k < score_gradient.size(); ++k)
      of_slate[readout.slate_of_config[k]] += score_gradient[k];
  }
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const std::int64_t row = first + i;
    double sum = 0;
    for (std::int64_t e = own.begin[row]; e < own.begin[row + 1]; ++e)
      sum += own.weight[e] * score_gradient[own.source[e]];
    for (std::int64_t e = common.begin[row]; e < common.begin[row + 1]; ++e) {
      sum += common.weight[e] * of_slate[common.source[e]];
    }
    gradient[i] = static_cast<float>(sum * scale);
  }
}

}  // namespace tpudist
