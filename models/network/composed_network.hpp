#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/parameters/parameter_table.hpp"
#include "core/thread_pool.hpp"
#include "models/inputs/encoder.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/layers/layer.hpp"
#include "models/network/device_context.hpp"
#include "models/network/network_config.hpp"
#include "models/operators/backend.hpp"
#include "models/operators/device_arrays.hpp"
#include "models/plans/plan.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// A plan and what the layers of a network need to run a unit on it. Immutable.
struct PreparedPlan {
  std::shared_ptr<const Plan> plan;
  UnitTensors tensors;
  PlanContext context;
  std::shared_ptr<const Backend> backend;
};

// What a composed network needs of a unit besides its weights, for all members: the unit on its
// whole plan, and on the part that differences between scores depend on (needed_part). Each is made
// on first use. Thread-safe.
class PreparedUnit {
 public:
  using Make = std::function<std::shared_ptr<const PreparedPlan>()>;

  std::shared_ptr<const PreparedPlan> whole(const Make& make) const { return whole_.get(make); }
  std::shared_ptr<const PreparedPlan> needed(const Make& make) const { return needed_.get(make); }

 private:
  class Once {
   public:
    std::shared_ptr<const PreparedPlan> get(const Make& make) const {
      std::call_once(once_, [&] { part_ = make(); });
      return part_;
    }

   private:
    mutable std::once_flag once_;
    mutable std::shared_ptr<const PreparedPlan> part_;
  };

  Once whole_, needed_;
};

// Adds all arrays that a network reads from a unit. upload() puts the tensors of `part` on the
// device. `part` must outlive `arrays`.
void add_arrays(PreparedPlan& part, DeviceArrays& arrays);

// One call of a network on a unit. Everything except the weights is borrowed while the call and its
// recorded graph live.
struct NetworkCall {
  const PreparedPlan& unit;                          // with the weights' dtype
  LayerWeights weights;                              // of M members
  std::span<const std::uint64_t> dropout_keys = {};  // [M], or empty: nothing is dropped
  const KeptUse* kept = nullptr;                     // as UnitInput::kept; M is then 1
  int member = 0;                                    // among the members of `kept`

  const Backend& backend() const { return *unit.backend; }
};

// A network of layers over plan operators, which LibTorch's autograd differentiates. It runs on the
// CPU or on a device, in float32 or in double: the dtype of the weights. Immutable, thread-safe.
//
// It is a sequence of segments: the encoder, every block, and the head together with the pooling
// before it. Each segment passes the rows to the next one. The encoder also passes the states of
// its configurations to all other segments.
class ComposedNetwork {
 public:
  // Throws ConfigError if the head takes states of configurations but the collection has states of
  // nodes.
  ComposedNetwork(const NetworkConfig& config, const FeatureSchema& schema,
                  const DeviceContext& context = {});

  const ParameterTable& parameters() const { return table_; }
  const PlanShape& plan_shape() const { return shape_; }
  const FeatureSchema& schema() const { return schema_; }

  // Prepares a unit. A device gets all in one copy. On the CPU the unit's operators run in `pool`,
  // which must outlive the result.
  std::shared_ptr<const PreparedPlan> prepare(const UnitInput& input, at::ScalarType dtype,
                                              ThreadPool& pool) const;
  // Whether scores are sums over rows. Then a part of the plan gives the differences between scores
  // (needed_part).
  bool adds_up_rows() const;
  // The weights of one member as views of its flat buffer [P], float32. They take gradients if
  // `trained`. The buffer must outlive them.
  LayerWeights views(const float* member, bool trained) const;
  // Copies the parameters `flat` [M, P] to the network's device, as [M, Q]. Each entry begins at a
  // multiple of 256 bytes, so that views of it lie like rows (models/operators/backend.hpp).
  at::Tensor place(std::span<const float> flat) const;
  // The weights of the members of `placed`, rows of a result of place(), as views; with several
  // `slots` each member's as often, copied.
  LayerWeights weights_of(const at::Tensor& placed, bool trained, std::int64_t slots = 1) const;
  DeviceCopies& copies() const { return *copies_; }

  // The scores [M, configurations] in double.
  at::Tensor scores(const NetworkCall& call) const;

  int segments() const { return static_cast<int>(first_entry_.size()) - 1; }
  // The entries of the parameter table that a segment uses.
  std::span<const ParameterEntry> entries(int segment) const;
  // How many plan layers the segments before this one use.
  int depth(int segment) const { return depth_[static_cast<std::size_t>(segment)]; }
  // Whether the states that the encoder passes to the other segments depend on weights.
  bool trains_states() const { return encoder_.embeds_states(); }
  // What flows between two segments.
  struct Flow {
    RowStates rows;     // after the last segment: the scores [M, configurations] in double
    at::Tensor states;  // of configurations, from the encoder
  };
  // Runs one segment on the output of the one before it. The first segment ignores `before`.
  Flow run(int segment, const Flow& before, const NetworkCall& call) const;

 private:
  RowStates take_kept(const RowStates& computed, int segment, const NetworkCall& call) const;
  at::Tensor head(const at::Tensor& pooled, const NetworkCall& call) const;
  at::Tensor config_branch(const at::Tensor& states, const NetworkCall& call) const;
  at::Tensor pooled(const Flow& before, const NetworkCall& call) const;
  at::Tensor pooled(const RowStates& rows, const Pool& pool, const NetworkCall& call) const;
  std::vector<at::Tensor> pooled_cells(const RowStates& rows, const NetworkCall& call) const;
  void add_mlp(const std::string& name, std::int64_t in, const std::vector<std::int64_t>& widths,
               bool bias);

  NetworkConfig config_;
  PlanShape shape_;
  DeviceContext context_;
  std::unique_ptr<DeviceCopies> copies_;
  FeatureSchema schema_;
  Encoder encoder_;
  std::vector<std::shared_ptr<const Layer>> blocks_;
  bool drops_ = false;
  ParameterTable table_;
  std::vector<std::int64_t> placed_at_;   // placed_offsets(table_)
  std::vector<std::size_t> first_entry_;  // [segments + 1]
  std::vector<int> depth_;                // [segments]
};

// The forward and backward pass of one call through a composed network. Every segment records its
// own autograd graph, from inputs that are leaves to its output. With `recompute` only the inputs
// of segments are kept: the backward pass runs each segment again and then differentiates it.
// Without `recompute`, and without trained states (whose gradients are added segment by segment),
// all segments are one graph: one call of autograd, which on a device must wake a thread of its
// own. The bits are the same. All arguments are borrowed and must outlive the pass. Not
// thread-safe.
class ComposedPass {
 public:
  ComposedPass(const ComposedNetwork& network, NetworkCall call, bool recompute);

  // Returns the scores [M, configurations] in double. `unit`: the unit of the call. Call it once.
  at::Tensor forward();

  // Receives the gradient [M, ...] of one parameter; undefined where the scores do not depend on
  // it.
  using Sink = std::function<void(const ParameterEntry&, const at::Tensor&)>;

  // Passes the gradient of every trained parameter to `sink`, computed from d loss / d score [M,
  // configurations] in double. `unit`: the unit of the call; if the pass recomputes and the loss
  // ignores a shift, it may be the needed part of the call's plan. Call it at most once, after
  // forward().
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
