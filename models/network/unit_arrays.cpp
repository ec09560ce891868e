#include "models/network/composed_network.hpp"

namespace tpudist {
namespace {

void add_index(const std::unique_ptr<StateIndex>& index, DeviceArrays& arrays) {
  if (!index) return;
  arrays.add(index->index);
  arrays.add(index->transposed);
}

}  // namespace

void add_arrays(PreparedPlan& part, DeviceArrays& arrays) {
  const Plan& plan = *part.plan;
  arrays.add(part.context.units);
  arrays.add(plan.node);
  arrays.add(plan.rows_of_node);
  for (const auto& layer : plan.layers) arrays.add(*layer);
  arrays.add(plan.readout);
  for (const auto& groups : part.context.groups) {
    if (groups) arrays.add(*groups);
  }
  for (const auto& entries : part.context.entries) {
    if (entries) arrays.add(*entries);
  }
  for (const auto& index : part.context.state_index) add_index(index, arrays);
  for (const auto& keys : part.context.row_keys) arrays.add(keys);
  arrays.add(part.context.element_keys);
  for (const auto* index :
       {&part.tensors.opcode, &part.tensors.node_codes, &part.tensors.state_codes,
        &part.tensors.state, &part.tensors.state_of_config})
    add_index(*index, arrays);
  for (at::Tensor* const tensor :
       {&part.tensors.node_features, &part.tensors.state_features, &part.tensors.node_counts,
        &part.tensors.graph_features, &part.tensors.none_states}) {
    if (tensor->defined()) arrays.add(*tensor);
  }
  for (at::Tensor& factors : part.context.factors) {
    if (factors.defined()) arrays.add(factors);
  }
  for (const auto& attention : part.context.attention) {
    if (attention) arrays.add(*attention);
  }
}

}  // namespace tpudist
