#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "models/network/network.hpp"
#include "models/plans/build_plan.hpp"
#include "tests/models/plans/slate_case.hpp"

namespace tpudist::test {

inline UnitInput make_unit(const Network& network, std::span<const SlateCase> slates,
                           std::shared_ptr<const Plan> plan = nullptr) {
  UnitInput unit;
  std::vector<PlanSlate> views;
  for (const SlateCase& slate : slates) {
    unit.graphs.push_back(network.graph_of(network.graph_arrays(slate.features, slate.opcodes)));
    unit.states.insert(unit.states.end(), slate.state_values.begin(), slate.state_values.end());
    views.push_back(slate.view());
  }
  unit.plan = plan ? std::move(plan)
                   : std::make_shared<Plan>(build_dense_plan(views, network.plan_shape()));
  return unit;
}

inline AlignedFloats random_parameters(const Network& network, int members, std::uint64_t key) {
  const std::int64_t length = network.parameters().length();
  AlignedFloats flat(members * length);
  for (int m = 0; m < members; ++m)
    network.initialise(std::span(flat).subspan(m * length, length), key + m);
  return flat;
}

// Scores and gradients of members first .. first + count - 1. The loss is the sum of score * (a
// fixed number for each configuration).
struct CallResult {
  UnitScores scores;
  std::vector<std::vector<float>> gradients;
};

// How a call treats a shift of a slate's scores.
enum class Shift {
  counts,             // a shift counts
  ignored,            // the numbers sum to 0 over each slate, but neither loss nor caller says so
  ignored_and_told,   // the loss says so
  ignored_by_caller,  // the caller says so before
};

// d loss / d score of every configuration.
inline std::vector<double> score_weights(const Plan& plan, Shift shift) {
  std::vector<double> weights, sum(plan.readout.common.forward.rows()), count(sum.size());
  for (std::int64_t k = 0; k < plan.configs; ++k) {
    weights.push_back(static_cast<double>(k * 7 % 11) - 4.5);
    sum[plan.readout.slate_of_config[k]] += weights.back();
    count[plan.readout.slate_of_config[k]] += 1;
  }
  for (std::int64_t k = 0; shift != Shift::counts && k < plan.configs; ++k) {
    const std::int32_t slate = plan.readout.slate_of_config[k];
    weights[k] -= sum[slate] / count[slate];
  }
  return weights;
}

// The loss of a call; stores the scores that it gets in `seen`.
inline LossGradient weighted_sum(const Plan& plan, Shift shift, UnitScores& seen) {
  return [&plan, shift, &seen](const UnitScores& scores) {
    seen = scores;
    ScoreGradient gradient;
    const std::vector<double> own = score_weights(plan, shift);
    for (int m = 0; m < scores.members; ++m)
      gradient.values.insert(gradient.values.end(), own.begin(), own.end());
    if (shift == Shift::ignored_and_told)
      gradient.translation_invariant.assign(scores.members, true);
    return gradient;
  };
}

inline CallResult call(const Network& network, std::span<const float> flat, int first, int count,
                       const UnitInput& unit, Shift shift = Shift::counts) {
  CallResult result;
  result.gradients.assign(count, std::vector<float>(network.parameters().length(), 7.0f));
  const std::vector<std::span<float>> spans(result.gradients.begin(), result.gradients.end());
  network.gradient(flat, first, count, unit, weighted_sum(*unit.plan, shift, result.scores), spans,
                   shift != Shift::ignored_by_caller);
  return result;
}

}  // namespace tpudist::test
