#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "core/random.hpp"
#include "models/network.hpp"

namespace tpudist::test {

// One graph with its slate, as raw arrays.
struct SlateCase {
  std::int64_t nodes = 0, configs = 0, state_rows = 0;
  std::vector<std::int32_t> edges, config_nodes, states;
  std::vector<float> features;        // [nodes, 140] raw
  std::vector<std::uint8_t> opcodes;  // [nodes]
  std::vector<float> state_values;    // [state_rows, F]

  PlanSlate view() const { return {nodes, edges, config_nodes, configs, states, state_rows}; }
};

// A random graph (parallel edges, nodes without neighbours) and configurations of it; no
// configurable nodes: a tile slate.
inline SlateCase random_slate(std::uint64_t key, std::int64_t nodes, std::int64_t configs,
                              std::int64_t config_nodes, int config_features) {
  CounterRng rng(key);
  SlateCase slate{nodes, configs, 0, {}, {}, {}, {}, {}, {}};
  for (std::int64_t e = 0; e < nodes * 3 / 2; ++e) {
    const std::int64_t producer = rng.below(nodes - 1);
    const auto consumer = static_cast<std::int32_t>(producer + 1 + rng.below(nodes - producer - 1));
    for (std::uint64_t copies = 1 + (rng.below(5) == 0); copies > 0; --copies) {
      slate.edges.insert(slate.edges.end(), {consumer, static_cast<std::int32_t>(producer)});
    }
  }
  for (std::int64_t j = 0; j < config_nodes; ++j) {
    slate.config_nodes.push_back(static_cast<std::int32_t>(j * nodes / config_nodes));
  }
  slate.state_rows = config_nodes ? 3 * config_nodes : configs;
  for (std::int64_t k = 0; k < configs; ++k) {
    for (std::int64_t j = 0; j < config_nodes; ++j) {
      slate.states.push_back(static_cast<std::int32_t>(3 * j + rng.below(3)));
    }
    if (!config_nodes) slate.states.push_back(static_cast<std::int32_t>(k));
  }
  for (std::int64_t i = 0; i < nodes * 140; ++i) {
    slate.features.push_back(rng.below(3) ? 0 : static_cast<float>(rng.uniform(-100, 1000)));
  }
  for (std::int64_t v = 0; v < nodes; ++v)
    slate.opcodes.push_back(static_cast<std::uint8_t>(rng.below(120)));
  for (std::int64_t i = 0; i < slate.state_rows * config_features; ++i) {
    slate.state_values.push_back(static_cast<float>(rng.below(7)) - 1);
  }
  return slate;
}

inline UnitInput make_unit(const Network& network, std::span<const SlateCase> slates,
                           std::shared_ptr<const Plan> plan = nullptr) {
  UnitInput unit;
  std::vector<PlanSlate> views;
  for (const SlateCase& slate : slates) {
    unit.graphs.push_back(network.prepare_graph(slate.features, slate.opcodes));
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

// Scores and gradients of members first .. first + count - 1, the loss being the sum of score * (a
// fixed number for each configuration).
struct CallResult {
  UnitScores scores;
  std::vector<std::vector<float>> gradients;
};

// How a call treats a shift of a slate's scores.
enum class Shift {
  counts,             // nothing is said of it
  ignored,            // the numbers sum to 0 over each slate, but nothing is said of it
  ignored_and_told,   // and the loss tells
  ignored_by_caller,  // the caller says so before
};

// d loss / d score of every configuration.
inline std::vector<double> score_weights(const Plan& plan, Shift shift) {
  std::vector<double> weights, sum(plan.readout.common.in.rows()), count(sum.size());
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

// The loss of `call`, which keeps the scores it is given.
inline Network::LossGradient weighted_sum(const Plan& plan, Shift shift, UnitScores& seen) {
  return [&plan, shift, &seen](const UnitScores& scores) {
    seen = scores;
    ScoreGradient gradient;
    const std::vector<double> own = score_weights(plan, shift);
    for (int m = 0; m < scores.members; ++m)
      gradient.values.insert(gradient.values.end(), own.begin(), own.end());
    if (shift == Shift::ignored_and_told) gradient.shift_free.assign(scores.members, true);
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
