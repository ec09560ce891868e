#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/plan.hpp"

namespace tpudist {

// The sizes of a network's products with its weights: all of a network that its cost depends on.
struct NetworkWidths {
  std::int64_t node_features = 0, node_width = 0;  // Linear over the node features
  std::int64_t opcode_width = 0;                   // columns of the opcode embedding
  std::int64_t config_features = 0;                // 18 (layout) or 24 (tile)
  std::int64_t encoder_width = 0;                  // what [opcode | node | config] is mapped to
  struct Layer {
    std::int64_t width = 0;  // output channels
    int edge_sets = 1;       // each with weights of its own, beside those of the node itself
  };
  std::vector<Layer> layers;
};

// Arithmetic of one member's pass, in floating-point operations (two for a multiply-add): the
// products with the network's weights, which are nearly all of it.
struct PlanCost {
  double forward = 0;
  double backward = 0;         // of all rows
  double needed_backward = 0;  // where the loss ignores a shift of a slate's scores
  double states = 0;           // floats of the states before, between and behind the layers
  double step() const { return forward + needed_backward; }
};

PlanCost plan_cost(const Plan& plan, const NetworkWidths& network);

// The cost of a dense plan with `rows` rows in each layer (nodes x configurations) on `input_rows`
// distinct nodes and `states` states, without building it. `needed_rows` [layers]: how many of the
// rows that each layer makes are needed.
PlanCost dense_plan_cost(std::int64_t rows, std::span<const std::int64_t> needed_rows,
                         std::int64_t input_rows, std::int64_t states,
                         const NetworkWidths& network);

}  // namespace tpudist
