#pragma once

#include <cstdint>
#include <span>

#include "models/network_config.hpp"
#include "models/plan.hpp"

namespace tpudist {

// Arithmetic of one member's pass, in floating-point operations (two for a multiply-add): the
// products with the network's weights, which are nearly all of it.
struct PlanCost {
  double forward = 0;
  double backward = 0;         // of all rows
  double needed_backward = 0;  // where the loss ignores a shift of a slate's scores
  double step() const { return forward + needed_backward; }
};

// `config_features`: 18 (layout) or 24 (tile).
PlanCost plan_cost(const Plan& plan, const NetworkConfig& network, std::int64_t config_features);

// Of a dense plan with `rows` rows in each layer (nodes x configurations) on `input_rows` distinct
// nodes and `states` states, without building it. `needed_rows` [layers]: needed ones of what each
// layer makes.
PlanCost dense_plan_cost(std::int64_t rows, std::span<const std::int64_t> needed_rows,
                         std::int64_t input_rows, std::int64_t states, const NetworkConfig& network,
                         std::int64_t config_features);

}  // namespace tpudist
