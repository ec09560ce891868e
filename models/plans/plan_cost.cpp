#include "models/plans/plan_cost.hpp"

namespace tpudist {
namespace {

double flops(std::int64_t rows, std::int64_t in, std::int64_t out) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
}

double encoder_flops(std::int64_t input_rows, std::int64_t states, const NetworkWidths& network) {
  return flops(input_rows, network.node_features, network.node_width) +
         flops(input_rows, network.opcode_width + network.node_width, network.encoder_width) +
         flops(states, network.config_features, network.encoder_width);
}

}  // namespace

PlanCost plan_cost(const Plan& plan, const NetworkWidths& network) {
  PlanCost cost;
  const double encoder = encoder_flops(plan.nodes, plan.states, network);
  cost.forward = encoder;
  cost.backward = cost.needed_backward = 2 * encoder;
  std::int64_t in = network.encoder_width;
  cost.states = static_cast<double>(plan.first_rows() * in);
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    // The weights multiply each row before the layer once, as a node's own state, and each
    // neighbourhood once. In a dense plan both are as many as the rows.
    const PlanLayer& layer = *plan.layers[i];
    const NeededCounts& counts = plan.needed_counts[i];
    std::int64_t all = layer.rows_in, needed = counts.self_rows;
    for (std::size_t set = 0; set < layer.edges.size(); ++set) {
      const SparseMatrix& matrix = layer.edges[set].aggregate;
      all += matrix.forward.rows() * matrix.replicas;
      needed += counts.neighbourhoods[set];
    }
    const std::int64_t out = network.layers[i].width;
    cost.forward += flops(all, in, out);
    cost.backward += 2 * flops(all, in, out);
    cost.needed_backward += 2 * flops(needed, in, out);
    cost.states += static_cast<double>(plan.rows(i + 1) * out);
    in = out;
  }
  return cost;
}

PlanCost dense_plan_cost(std::int64_t rows, std::span<const std::int64_t> needed_rows,
                         std::int64_t input_rows, std::int64_t states,
                         const NetworkWidths& network) {
  PlanCost cost;
  cost.forward = encoder_flops(input_rows, states, network);
  cost.backward = cost.needed_backward = 2 * cost.forward;
  std::int64_t in = network.encoder_width;
  cost.states = static_cast<double>(rows * in);
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const NetworkWidths::Layer& layer = network.layers[i];
    const std::int64_t inputs = layer.edge_sets + 1;
    cost.forward += flops(rows, inputs * in, layer.width);
    cost.backward += 2 * flops(rows, inputs * in, layer.width);
    cost.needed_backward += 2 * flops(needed_rows[i], inputs * in, layer.width);
    cost.states += static_cast<double>(rows * layer.width);
    in = layer.width;
  }
  return cost;
}

}  // namespace tpudist
