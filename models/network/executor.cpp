#include "models/network/executor.hpp"

#include <string>

#include "core/error.hpp"
#include "models/inputs/unit_input.hpp"

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
  const std::int64_t held =
      members.placed ? members.placed->members() : members.flat.size() / shape.parameters;
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

}  // namespace tpudist
