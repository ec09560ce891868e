#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "models/plans/plan.hpp"

namespace tpudist {

class GraphInput;
struct PreparedUnit;
struct StagedUnit;

// What a network call computes on: the slates of one unit. Shared parts are held by pointer.
// Immutable once it is complete.
struct UnitInput {
  std::vector<std::shared_ptr<const GraphInput>> graphs;  // the plan's input rows, in order
  std::vector<float> states;  // [plan.states, F], the slates' state tables one behind the other
  std::shared_ptr<const Plan> plan;
  // Whether it is made for gradients of losses that ignore a shift at all scores: those of
  // Network::gradient with `common` false. It decides what Network::stage makes beforehand.
  bool of_differences = false;
  // The unit's arrays packed for the network's device by Network::stage. Null: every call packs them
  // anew.
  std::shared_ptr<const StagedUnit> staged;
  // What layers need of the unit besides its plan, likewise kept by Network::stage where the network
  // is composed of layers.
  std::shared_ptr<const PreparedUnit> prepared;
};

// The scores of all configurations of a unit, for the members of the call. A score is common +
// delta; ranking uses delta alone.
struct UnitScores {
  int members = 0;
  std::int64_t configs = 0;
  std::vector<double> delta;  // [members, configs]
  // [members, slates] what all configurations of a slate share; 0 where the call left it out.
  std::vector<double> common;
};

// What a loss says about the scores of a unit.
struct ScoreGradient {
  std::vector<double> values;  // [members, configs] d loss / d score
  // [members] whether the losses of all slates are translation-invariant at these scores, so that
  // the values of each slate sum to 0 apart from rounding; empty: for no member.
  std::vector<bool> translation_invariant;
  bool is_translation_invariant(int member) const {
    return !translation_invariant.empty() && translation_invariant[member];
  }
};

// Returns d loss / d score for the scores of a call.
using LossGradient = std::function<ScoreGradient(const UnitScores&)>;

}  // namespace tpudist
