#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/thread_pool.hpp"
#include "models/network_config.hpp"
#include "models/parameter_table.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// The static inputs of one graph in the form the network takes, made once and kept: features
// transformed (sign(x)*log1p|x|), opcodes, on the device. Owned, immutable, shared between threads.
class GraphInput;

// What one unit computes on: the slates of one unit. All shared parts are held by pointer;
// immutable.
struct UnitInput {
  std::vector<std::shared_ptr<const GraphInput>> graphs;  // the plan's input rows, in order
  std::vector<float> states;  // [plan.states, F], the slates' state tables one behind the other
  std::shared_ptr<const Plan> plan;
  // The same packed for the network's device, by Network::stage. Null: every call packs it anew.
  std::shared_ptr<const void> staged;
};

// Scores of all configurations of a unit for the members it was run for. score = common + delta:
// `delta` carries the differences that are ranked.
struct UnitScores {
  int members = 0;
  std::int64_t configs = 0;
  std::vector<double> delta;   // [members, configs]
  std::vector<double> common;  // [members, slates] what is common to a slate's configurations (0
                               // where the plan does not separate it)
};

// What a loss says about the scores of a unit.
struct ScoreGradient {
  std::vector<double> values;  // [members, configs] d loss / d score
  std::vector<bool>
      shift_free;  // [members] the values of each slate sum to 0, apart from rounding,
                   // because the loss ignores a shift of its scores; empty: none do
  bool ignores_shift(int member) const { return !shift_free.empty() && shift_free[member]; }
};

// How a network uses memory and the device. The numbers do not depend on it.
struct NetworkOptions {
  // Keep the states between every other layer only, and run the layers between again in the
  // backward pass (on the CPU).
  bool recompute = false;
  // Record the work of units whose shapes come again as CUDA graphs (on a GPU): their kernels start
  // together, and what the recorded passes make stays on the device.
  bool replay = false;
};

// A GNN whose every weight carries the member axis. Holds no parameters: they live in a flat buffer
// [M, P] float32 that the caller owns, laid out by `parameters()`. Immutable, thread-safe: units
// run side by side; row blocks inside a unit are shared through the pool. The result for a member
// does not depend on the other members of the call, nor on the number of threads.
class Network {
 public:
  // `config_features`: 18 (layout) or 24 (tile). `device_index` -1 = CPU.
  Network(const NetworkConfig& config, int config_features, int device_index, ThreadPool& pool,
          const NetworkOptions& options = {});
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const NetworkConfig& config() const;
  const ParameterTable& parameters() const;
  PlanShape plan_shape() const;
  int config_features() const;

  // Initialises one member, flat [P], as PyTorch Geometric would (Linear and SAGEConv: uniform
  // +-1/sqrt(fan_in), Embedding: normal), from a counter-based key.
  void initialise(std::span<float> flat, std::uint64_t key) const;

  std::shared_ptr<const GraphInput> prepare_graph(std::span<const float> node_features,
                                                  std::span<const std::uint8_t> opcodes) const;

  // Packs a complete unit for the network's device, so that its calls only send it; leave it as it
  // is from then on. Meant for the threads that build units. Does nothing on the CPU.
  void stage(UnitInput& input) const;

  // How many members to compute in one call on a plan, where there is a choice: as many as share
  // the processor's caches, or all. The numbers do not depend on it.
  int members_together(const Plan& plan) const;

  // In both calls `flat` is copied where it does not lie on a 64-byte boundary (core/aligned.hpp).
  // Throw Error where plan, graphs, states and parameters do not fit together.
  //
  // Scores without gradient for members first .. first + count - 1 of `flat` [M, P].
  UnitScores scores(std::span<const float> flat, int first_member, int count,
                    const UnitInput& input) const;

  // Forward pass, then `loss_gradient(scores)` is asked for d loss / d score, then the backward
  // pass. Writes the gradient of each member into gradients[m] (flat [P], overwritten, padding
  // zero). Rows that only shift a slate's scores are left out of the backward pass of members that
  // `shift_free` names, and of both passes (scores.common is 0) where `common` is false: the
  // caller's losses ignore a shift whatever the scores.
  using LossGradient = std::function<ScoreGradient(const UnitScores&)>;
  void gradient(std::span<const float> flat, int first_member, int count, const UnitInput& input,
                const LossGradient& loss_gradient, std::span<const std::span<float>> gradients,
                bool common = true) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tpudist
