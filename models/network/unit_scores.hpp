#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tpudist {

// The scores of all configurations of a unit, for the members of the call. A score is common +
// delta; only delta decides the ranking.
struct UnitScores {
  int members = 0;
  std::int64_t configs = 0;
  std::vector<double> delta;  // [members, configs]
  // [members, slates] the part of the score that all configurations of a slate share; 0 where the
  // call left it out.
  std::vector<double> common;
};

// The gradient of a loss with respect to the scores of a unit.
struct ScoreGradient {
  std::vector<double> values;  // [members, configs] d loss / d score
  // [members] whether the losses of all slates are translation-invariant at these scores. Then the
  // values of each slate sum to 0 apart from rounding. Empty: for no member.
  std::vector<bool> translation_invariant;
  bool is_translation_invariant(int member) const {
    return !translation_invariant.empty() && translation_invariant[member];
  }
};

// Returns d loss / d score for the scores of a call.
using LossGradient = std::function<ScoreGradient(const UnitScores&)>;

}  // namespace tpudist
