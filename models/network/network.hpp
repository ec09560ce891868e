#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/parameters/parameter_table.hpp"
#include "core/thread_pool.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/network/call_values.hpp"
#include "models/network/network_config.hpp"
#include "models/operators/device_copies.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// Whether this program can run networks on a GPU: it was built with nvcc.
bool runs_on_gpus();

// A graph neural network for an ensemble of members, each with its own weights. It holds no
// parameters: they live in a flat buffer [M, P] float32 that the caller owns; `parameters()`
// describes its layout. Several units may run at the same time, and the blocks of rows inside a
// unit are tasks of the thread pool. The result for a member depends neither on the other members
// of the call nor on the number of threads. Immutable, thread-safe.
class Network {
 public:
  // A network for graphs of this schema. `device_index`: a CUDA device; -1 is the CPU. `pool` must
  // outlive the network. `recompute`: keep only the states between the blocks of a composed
  // network, or of every other layer of a stack of plain SAGE layers; the backward pass runs the
  // layers in between again, with the same bits. Throws ConfigError for a network without layers,
  // and for a device that this program cannot use or that lacks the network's precision.
  Network(const NetworkConfig& config, const FeatureSchema& schema, int device_index,
          ThreadPool& pool, bool recompute = false);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const NetworkConfig& config() const;
  const ParameterTable& parameters() const;
  PlanShape plan_shape() const;
  const FeatureSchema& schema() const;

  // Initialises one member, flat [P], as PyTorch Geometric does: Linear and SAGEConv uniformly in
  // +-1 / sqrt(fan_in), an Embedding normally. The numbers are a pure function of `key`.
  void initialise(std::span<float> flat, std::uint64_t key) const;

  // Whether set_statistics() has an effect: whether the encoder standardises features.
  bool takes_statistics() const;
  // Writes the statistics for standardising features into one member, flat [P].
  void set_statistics(const FeatureStatistics& statistics, std::span<float> flat) const;

  // The rows that describe a graph's nodes to this network, [nodes, input_columns()]: node_feat
  // [nodes, F], followed by what the network needs of `edges`, [m, 2] (consumer, producer). Throws
  // DataError if that would take too long (GraphColumns::of).
  Array<float> input_rows(const Array<float>& node_features,
                          std::span<const std::int32_t> edges) const;
  int input_columns() const;

  // The graph's inputs in the form that this network takes, made in two steps, between which the
  // arrays may be stored in a file. `node_features` [nodes, input_columns()] raw, `opcodes`
  // [nodes]. graph_arrays() computes everything and throws as GraphArrays::of does. graph_of()
  // makes the object, which shares the arrays. It throws DataError if they are not the arrays of a
  // graph for this network.
  GraphArrays graph_arrays(std::span<const float> node_features,
                           std::span<const std::uint8_t> opcodes) const;
  std::shared_ptr<const GraphInput> graph_of(const GraphArrays& arrays) const;
  // Hash of the encoder settings, the libraries and the kind of CPU, but not of the network's width
  // and depth. With the features it decides the bits of graph_arrays.
  std::uint64_t graph_key() const;
  // The bytes of host memory that graph_of() keeps for a graph of `nodes` nodes.
  std::uint64_t graph_bytes(std::int64_t nodes) const;

  // Makes UnitInput::prepared of a complete unit, so that calls need not make it. For the threads
  // that build units. The unit must not change afterwards.
  void prepare_unit(UnitInput& input) const;

  // Joins units (models/inputs/unit_input.hpp) for `gradient` below, and prepares the result. On a
  // device alone. The units need not be prepared. If the loss ignores a shift at all scores, give
  // each the needed part of its plan.
  UnitInput join(const std::vector<std::vector<const UnitInput*>>& blocks) const;

  // The channels of KeptRows for calls of this network on the CPU, which keep the states between
  // blocks; after its last layer a fused network keeps one number of a row. Empty where calls
  // cannot take states: a layer that looks at all nodes or all configurations needs all rows at
  // once.
  std::vector<std::int64_t> kept_channels() const;

  // How many members a call on this plan should take, if the caller can choose: as many as share
  // the processor's caches, or all. Scores and gradients do not depend on it.
  int members_together(const Plan& plan) const;

  // About the bytes that one leaf on this plan takes of a GPU during a pass that computes gradients:
  // training_floats(), and its parameters with their gradients.
  double leaf_bytes(const Plan& plan) const;

  // Copies `flat` [M, P] to the network's device, for all calls until `flat` changes. On the CPU
  // makes no copy.
  Parameters place(std::span<const float> flat) const;
  // The memory of this network's device; null on the CPU.
  DeviceCopies* device() const;
  // The copies between this network and its device so far.
  CopyCounts copies() const;

  // Both calls below copy parameters that do not lie on a 64-byte boundary (core/aligned.hpp).
  // They throw Error when plan, graphs, states and parameters do not fit together.
  //
  // Returns the scores without a gradient, for members first .. first + count - 1.
  // `dropout_keys`: one for each member of `parameters`; empty: nothing is dropped.
  UnitScores scores(const Parameters& parameters, int first_member, int count,
                    const UnitInput& input, std::span<const std::uint64_t> dropout_keys = {}) const;

  // Runs the forward pass, asks `loss_gradient(scores)` for d loss / d score, and runs the backward
  // pass. Writes the gradient of each member into its row (flat [P], overwritten, padding zero). If
  // a member's loss is translation-invariant at these scores, its backward pass on the CPU leaves
  // out rows that only shift a slate's scores. With `common` false both passes leave those rows out,
  // and scores.common is 0: for losses that are translation-invariant at all scores.
  void gradient(const Parameters& parameters, int first_member, int count, const UnitInput& input,
                const LossGradient& loss_gradient, const GradientRows& gradients,
                bool common = true, std::span<const std::uint64_t> dropout_keys = {}) const;

  // The same for joined units, on the network's device. A leaf is a member of the call with a unit
  // from which it learns; its number is member * slots + slot. Writes the gradients of the leaves
  // `kept`, ascending, one after another. A leaf has the bits that it would have alone, so it does
  // not matter which leaves are joined. Needs placed parameters.
  void gradient(const Parameters& parameters, int first_member, int count,
                const std::vector<int>& kept, const UnitInput& joined,
                const LossGradient& loss_gradient, const GradientRows& gradients,
                std::span<const std::uint64_t> dropout_keys = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tpudist
