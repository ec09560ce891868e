#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/plans/plan.hpp"

namespace tpudist {

class GraphInput;
class PreparedUnit;

// What a unit is made for, which decides what Network::prepare_unit makes. `differences`: gradients
// of losses that ignore a shift at all scores, those of Network::gradient with `common` false.
enum class UnitUse { scores, gradients, differences };

// The input of a network call: the slates of one unit. Shared parts are held by pointer. Immutable
// once it is complete.
struct UnitInput {
  std::vector<std::shared_ptr<const GraphInput>> graphs;  // the plan's input rows, in order
  std::vector<float> states;  // [plan.states, F], the slates' state tables one after another
  std::shared_ptr<const Plan> plan;
  UnitUse use = UnitUse::scores;
  // What layers need of the unit besides its plan, on the network's device. Network::prepare_unit
  // makes it where the network is composed of layers. Null: every call makes its own.
  std::shared_ptr<const PreparedUnit> prepared;
};

}  // namespace tpudist
