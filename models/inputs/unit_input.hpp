#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/plans/plan.hpp"

namespace tpudist {

class GraphInput;
class PreparedUnit;
struct StagedUnit;

// The input of a network call: the slates of one unit. Shared parts are held by pointer. Immutable
// once it is complete.
struct UnitInput {
  std::vector<std::shared_ptr<const GraphInput>> graphs;  // the plan's input rows, in order
  std::vector<float> states;  // [plan.states, F], the slates' state tables one after another
  std::shared_ptr<const Plan> plan;
  // Whether it is for gradients of losses that ignore a shift at all scores: calls of
  // Network::gradient with `common` false. Network::stage prepares different data then.
  bool of_differences = false;
  // The unit's arrays packed for the network's device by Network::stage. Null: every call packs
  // them anew.
  std::shared_ptr<const StagedUnit> staged;
  // Data of the unit that layers need besides its plan, also made by Network::stage if the network
  // is composed of layers.
  std::shared_ptr<const PreparedUnit> prepared;
};

}  // namespace tpudist
