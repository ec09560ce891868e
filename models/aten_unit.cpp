#include "models/aten_unit.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <map>

#include "models/csr.hpp"

namespace tpudist {

DeviceUnit to_device(const UnitInput& input, std::int64_t config_features, at::Device device) {
  const Plan& plan = *input.plan;
  DeviceUnit unit;
  std::vector<at::Tensor> features, opcodes;
  std::vector<std::int32_t> opcode;
  for (const auto& graph : input.graphs) {
    std::shared_ptr<const void> held = graph->device();
    if (!held) held = std::make_shared<DeviceGraph>(to_device(*graph, device));
    const auto& on_device = *static_cast<const DeviceGraph*>(held.get());
    features.push_back(on_device.features);
    opcodes.push_back(on_device.opcode);
    opcode.insert(opcode.end(), graph->opcode().begin(), graph->opcode().end());
  }
  unit.features = at::cat(features);
  unit.opcode = at::cat(opcodes);
  unit.nodes_of_opcode = to_device(rows_of(opcode, GraphInput::opcodes), device);
  const at::Tensor states = at::from_blob(const_cast<float*>(input.states.data()),
                                          {plan.states, config_features}, at::kFloat);
  unit.states = at::cat({states, at::zeros({1, config_features}, at::kFloat)}).to(device);
  unit.node = to_device(plan.node, device);
  const at::Tensor state = to_device(plan.state, device);
  unit.state = state.masked_fill(state < 0, static_cast<std::int32_t>(plan.states));
  unit.rows_of_node = to_device(plan.rows_of_node, device);
  unit.rows_of_state = to_device(plan.rows_of_state, device);
  std::map<const Step*, std::shared_ptr<const DeviceStep>> known;
  for (const auto& step : plan.steps) {
    auto& on_device = known[step.get()];
    if (!on_device) on_device = std::make_shared<DeviceStep>(to_device(*step, device));
    unit.steps.push_back(on_device);
  }
  return unit;
}

}  // namespace tpudist
