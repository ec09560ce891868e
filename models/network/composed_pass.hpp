#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/network/composed_network.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// A call's way through a composed network and back. Every segment records a graph of its own, between
// inputs that are leaves and its output. With `recompute` the graphs are not kept: the inputs of the
// segments are, and the way back runs each segment again before it differentiates it. Both give the
// same bits. All arguments are borrowed and outlive the pass. Not thread-safe.
class ComposedPass {
 public:
  ComposedPass(const ComposedNetwork& network, NetworkCall call, bool recompute);

  // Returns the scores [configurations, M] in double. `unit`: the call's. Call it once.
  at::Tensor forward();

  // Takes the gradient [M, ...] of one parameter; undefined where the scores do not depend on it.
  using Sink = std::function<void(const ParameterEntry&, const at::Tensor&)>;

  // Gives the gradient of every trained parameter to `sink`, from d loss / d score [configurations, M]
  // in double. `unit`: the call's; or, of a pass that recomputes, the needed part of its plan, where the
  // loss ignores a shift. Call it at most once, after forward().
  void backward(const PreparedPlan& unit, const at::Tensor& d_scores, const Sink& sink);

 private:
  using Flow = ComposedNetwork::Flow;
  // A segment that ran: its inputs as leaves, and its outputs, which hang on them and on the weights.
  struct Segment {
    Flow before, behind;
  };

  Segment run(int segment, const Flow& before, const NetworkCall& call) const;
  void differentiate(int segment, const Segment& ran, Flow& gradient, const Sink& sink) const;

  const ComposedNetwork& network_;
  NetworkCall call_;
  bool recompute_;
  std::vector<Segment> segments_;  // with `recompute` the inputs alone
};

}  // namespace tpudist
