#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <utility>

// What an operator keeps for its backward pass besides tensors. For .cpp files of models/operators/
// only.

namespace tpudist {

template <typename State>
struct KeptState : torch::CustomClassHolder {
  explicit KeptState(State state) : state(std::move(state)) {}
  const State state;
};

// Keeps `state` as long as the recorded graph lives. What it borrows must outlive the graph.
template <typename State>
const State& keep_state(torch::autograd::AutogradContext* context, State state) {
  auto holder = c10::make_intrusive<KeptState<State>>(std::move(state));
  const State& kept = holder->state;
  context->saved_data["state"] = c10::IValue::make_capsule(std::move(holder));
  return kept;
}

// Returns what keep_state() kept, of the same type.
template <typename State>
const State& kept_state(torch::autograd::AutogradContext* context) {
  const auto holder = context->saved_data["state"].toCapsule();
  return static_cast<const KeptState<State>*>(holder.get())->state;
}

}  // namespace tpudist
