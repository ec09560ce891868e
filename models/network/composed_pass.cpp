#include "models/network/composed_network.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

namespace tpudist {
namespace {

at::Tensor leaf(const at::Tensor& value, bool trained) {
  if (!value.defined()) return value;
  return value.detach().requires_grad_(trained);
}

}  // namespace

ComposedPass::ComposedPass(const ComposedNetwork& network, NetworkCall call, bool recompute)
    : network_(network),
      call_(std::move(call)),
      recompute_(recompute),
      joined_(!recompute && !network.trains_states()) {}

// Records a graph only if the thread's GradMode is on.
ComposedPass::Segment ComposedPass::run(int segment, const Flow& before,
                                        const NetworkCall& call) const {
  if (joined_) return {{}, network_.run(segment, before, call)};
  Segment ran{{leaf(before.rows, true), leaf(before.states, network_.trains_states())}, {}};
  ran.behind = network_.run(segment, ran.before, call);
  return ran;
}

at::Tensor ComposedPass::forward() {
  const at::AutoGradMode with_graph(!recompute_);
  Flow flow;
  for (int segment = 0; segment < network_.segments(); ++segment) {
    if (joined_) segments_.clear();
    segments_.push_back(run(segment, flow, call_));
    flow = segments_.back().behind;
    if (recompute_) segments_.back().behind = {};
  }
  return flow.rows.detach();
}

void ComposedPass::backward(const PreparedPlan& unit, const at::Tensor& d_scores,
                            const Sink& sink) {
  const at::AutoGradMode with_graph(true);
  const NetworkCall call{unit, call_.weights, call_.dropout_keys};
  if (joined_) {
    std::vector<const ParameterEntry*> trained;
    std::vector<at::Tensor> leaves;
    for (int segment = network_.segments() - 1; segment >= 0; --segment)
      add_trained(segment, trained, leaves);
    const std::vector<at::Tensor> outputs{std::exchange(segments_, {}).back().behind.rows};
    const std::vector<at::Tensor> gradients = torch::autograd::grad(
        outputs, leaves, {d_scores}, std::nullopt, false, /*allow_unused=*/true);
    for (std::size_t i = 0; i < trained.size(); ++i) sink(*trained[i], gradients[i]);
    return;
  }
  Flow gradient{d_scores, {}};
  for (int segment = network_.segments() - 1; segment >= 0; --segment) {
    Segment ran = std::exchange(segments_[static_cast<std::size_t>(segment)], {});
    if (recompute_) {
      Flow before = ran.before;
      if (segment > 0)
        before.rows = before.rows.narrow(
            1, 0, unit.plan->rows(static_cast<std::size_t>(network_.depth(segment))));
      ran = {};
      ran = run(segment, before, call);
    }
    differentiate(segment, ran, gradient, sink);
  }
}

void ComposedPass::add_trained(int segment, std::vector<const ParameterEntry*>& trained,
                               std::vector<at::Tensor>& leaves) const {
  for (const ParameterEntry& entry : network_.entries(segment)) {
    if (entry.group == ParameterGroup::statistics) continue;
    trained.push_back(&entry);
    leaves.push_back(call_.weights[entry.name]);
  }
}

// Turns the gradient of the segment's outputs into the gradient of its inputs. The states' gradient
// is summed over all segments, and then goes back through the first one.
void ComposedPass::differentiate(int segment, const Segment& ran, Flow& gradient,
                                 const Sink& sink) const {
  std::vector<at::Tensor> outputs{ran.behind.rows}, d_outputs{gradient.rows}, leaves;
  if (segment == 0 && gradient.states.defined()) {
    outputs.push_back(ran.behind.states);
    d_outputs.push_back(gradient.states);
  }
  std::vector<const ParameterEntry*> trained;
  add_trained(segment, trained, leaves);
  const std::size_t parameters = leaves.size();
  const bool of_states = segment > 0 && network_.trains_states();
  if (segment > 0) leaves.push_back(ran.before.rows);
  if (of_states) leaves.push_back(ran.before.states);
  if (leaves.empty()) return;  // an encoder without parameters
  std::vector<at::Tensor> parts =
      torch::autograd::grad(outputs, leaves, d_outputs, std::nullopt, false, /*allow_unused=*/true);
  for (std::size_t i = 0; i < parameters; ++i) sink(*trained[i], parts[i]);
  if (segment == 0) return;
  gradient.rows = std::move(parts[parameters]);
  if (!of_states || !parts.back().defined()) return;
  gradient.states =
      gradient.states.defined() ? gradient.states + parts.back() : std::move(parts.back());
}

}  // namespace tpudist
