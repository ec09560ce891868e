#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/thread_pool.hpp"
#include "models/inputs/encoder.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/layers/layer.hpp"
#include "models/network/device_context.hpp"
#include "models/network/network_config.hpp"
#include "models/network/prepared_unit.hpp"
#include "models/parameters/parameter_table.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// One call of a network on a unit. Everything except the weights is borrowed for the call, and for
// as long as the graph that it records lives.
struct NetworkCall {
  const PreparedPlan& unit;                          // with the weights' dtype
  LayerWeights weights;                              // of M members
  std::span<const std::uint64_t> dropout_keys = {};  // [M], or empty: nothing is dropped

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
  // Throws ConfigError where the head takes states of configurations but the collection has states
  // of nodes.
  ComposedNetwork(const NetworkConfig& config, const FeatureSchema& schema,
                  const DeviceContext& place = {});

  const ParameterTable& parameters() const { return table_; }
  const PlanShape& plan_shape() const { return shape_; }

  // Prepares a unit on each of `plans`, which are the unit's own plan or parts of it; a device gets
  // all in one copy. On the CPU the operators of its calls run in `pool`, which must outlive it.
  std::vector<std::shared_ptr<const PreparedPlan>> prepare(
      const UnitInput& input, const std::vector<std::shared_ptr<const Plan>>& plans,
      at::ScalarType dtype, ThreadPool& pool) const;
  std::shared_ptr<const PreparedPlan> prepare(const UnitInput& input,
                                              std::shared_ptr<const Plan> plan,
                                              at::ScalarType dtype, ThreadPool& pool) const {
    return prepare(input, std::vector{std::move(plan)}, dtype, pool).front();
  }
  // Whether scores are sums over rows. Then a part of the plan gives the differences between scores
  // (models/plans/needed_part.hpp).
  bool adds_up_rows() const;
  // The weights of one member of a flat buffer [P], float32, as views of it. They take gradients
  // where `trained` is set. The buffer must outlive them.
  LayerWeights views(const float* member, bool trained) const;
  // A copy of the parameters of `flat` [M, P] on the network's device, [M, Q]: each entry begins at
  // a multiple of 256 bytes, so that views of it lie like rows (models/operators/backend.hpp).
  at::Tensor place(std::span<const float> flat) const;
  // [entries + 1] where entries begin in such a row, and Q.
  // The weights of the members of `placed`, rows of what place() returned, as views of it.
  LayerWeights weights_of(const at::Tensor& placed, bool trained) const;
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
  std::unique_ptr<PreparedPlan> part_of(const UnitInput& input, std::shared_ptr<const Plan> plan,
                                        at::ScalarType dtype) const;
  at::Tensor head(const at::Tensor& pooled, const NetworkCall& call) const;
  at::Tensor config_branch(const at::Tensor& states, const NetworkCall& call) const;
  at::Tensor pooled(const Flow& before, const NetworkCall& call) const;
  at::Tensor pooled(const RowStates& rows, const Pool& pool, const NetworkCall& call) const;
  void add_mlp(const std::string& name, std::int64_t in, const std::vector<std::int64_t>& widths,
               bool bias);

  NetworkConfig config_;
  PlanShape shape_;
  DeviceContext place_;
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

}  // namespace tpudist
