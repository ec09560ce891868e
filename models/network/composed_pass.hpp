#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/network/composed_network.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// The forward and backward pass of one call through a composed network. Every segment records its
// own autograd graph, from inputs that are leaves to its output. With `recompute` only the inputs
// of the segments are kept, not the graphs; the backward pass runs each segment again before it
// differentiates it. Without it, and without trained states, whose gradients are added over the
// segments in their order, all segments are one graph: one call of autograd, which on a device has a
// thread of its own to wake. The bits are the same. All arguments are borrowed and must
// outlive the pass. Not thread-safe.
class ComposedPass {
 public:
  ComposedPass(const ComposedNetwork& network, NetworkCall call, bool recompute);

  // Returns the scores [M, configurations] in double. `unit`: the unit of the call. Call it once.
  at::Tensor forward();

  // Receives the gradient [M, ...] of one parameter; undefined where the scores do not depend on
  // it.
  using Sink = std::function<void(const ParameterEntry&, const at::Tensor&)>;

  // Passes the gradient of every trained parameter to `sink`, computed from d loss / d score
  // [M, configurations] in double. `unit`: the unit of the call. A pass that recomputes may get the
  // needed part of the call's plan instead, where the loss ignores a shift. Call it at most once,
  // after forward().
  void backward(const PreparedPlan& unit, const at::Tensor& d_scores, const Sink& sink);

 private:
  using Flow = ComposedNetwork::Flow;
  // A segment that has run: its inputs as leaves, and its outputs, which depend on them and on the
  // weights.
  struct Segment {
    Flow before, behind;
  };

  Segment run(int segment, const Flow& before, const NetworkCall& call) const;
  void differentiate(int segment, const Segment& ran, Flow& gradient, const Sink& sink) const;
  void add_trained(int segment, std::vector<const ParameterEntry*>& trained,
                   std::vector<at::Tensor>& leaves) const;

  const ComposedNetwork& network_;
  NetworkCall call_;
  bool recompute_, joined_;
  std::vector<Segment> segments_;  // with `recompute` only the inputs; if joined, the last one
};

}  // namespace tpudist
